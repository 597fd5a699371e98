//! `logpond token list`: all tokens, without their secrets.

use logpond_record::Timestamp;
use serde_json::json;

use super::paths;
use crate::cli::{TableFormat, TokenList};
use crate::commands::listing::print;
use crate::commands::{Exit, Failure};
use logpond_host::clock;
use logpond_host::terminal::note;
use logpond_listen::tokens::{Tokens, read, time_text};
use logpond_render::Table;

pub(super) fn run(args: &TokenList) -> Result<Exit, Failure> {
    let paths = paths(&args.file)?;
    let tokens = read(&paths.tokens)?;
    if args.table.output == TableFormat::Json {
        print(json_lines(&tokens).as_bytes())?;
        return Ok(Exit::Found);
    }
    if tokens.entries().is_empty() {
        note(&format!(
            "there are no tokens in {}; make one by: logpond token create --role read",
            paths.tokens.display()
        ));
        return Ok(Exit::None);
    }
    print(&table(&tokens, clock::now()))?;
    note(&format!("-- the tokens of {} --", paths.tokens.display()));
    Ok(Exit::Found)
}

fn json_lines(tokens: &Tokens) -> String {
    let line = |entry: &logpond_listen::tokens::Entry| {
        let labels = entry.bounds.labels().iter();
        let labels: Vec<String> = labels
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let value = json!({
            "id": entry.id,
            "name": entry.name,
            "role": entry.role.as_str(),
            "created": time_text(entry.created),
            "expires": entry.expires.map(time_text),
            "only": entry.bounds.only(),
            "label": labels,
        });
        format!("{value}\n")
    };
    tokens.entries().iter().map(line).collect()
}

fn table(tokens: &Tokens, now: Timestamp) -> Vec<u8> {
    let columns = ["id", "name", "role", "created", "expires", "bounds"];
    let mut table = Table::new(&columns.map(|name| (name, false)));
    for entry in tokens.entries() {
        let expires = match entry.expires {
            None => "never".to_owned(),
            Some(end) if end <= now => format!("{} (over)", time_text(end)),
            Some(end) => time_text(end),
        };
        table.row(vec![
            entry.id.clone(),
            entry.name.clone().unwrap_or_default(),
            entry.role.as_str().to_owned(),
            time_text(entry.created),
            expires,
            match entry.bounds.only() {
                Some(only) => format!("only {only}"),
                None => entry.bounds.labels_text(),
            },
        ]);
    }
    let mut out = Vec::new();
    table.write(&mut out);
    out
}
