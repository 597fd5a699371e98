//! `logpond config`: checks, shows and prints settings, without a server.

use std::path::Path;

use serde_json::json;

use super::listing::print;
use super::{Exit, Failure, variable};
use crate::cli::{Config, ConfigCheck, ConfigShow, TableFormat};
use logpond_host::terminal::note;
use logpond_render::Table;
use logpond_settings::{
    Environment, Origin, SettingValue, Settings, default_file, effective, gather, read_file,
    read_proxies,
};

/// Settings whose addresses may hold secrets, which nothing prints.
const WITH_SECRETS: [&str; 2] = ["alertmanager", "alert-webhook"];

pub(super) fn run(config: &Config) -> Result<Exit, Failure> {
    match config {
        Config::Check(args) => check(args),
        Config::Show(args) => show(args),
        Config::Default => {
            print(default_file().as_bytes())?;
            Ok(Exit::Found)
        }
    }
}

fn check(args: &ConfigCheck) -> Result<Exit, Failure> {
    let surroundings = surroundings();
    let said = match &args.file {
        Some(path) => {
            let given = read_file(path)?.unwrap_or_default();
            Settings::resolve(&given, &surroundings)?;
            describe(path, &given)?
        }
        None => {
            let given = gather(None, Vec::new(), &surroundings)?;
            Settings::resolve(&given, &surroundings)?;
            let files = surroundings.files();
            let files = files.iter().filter(|path| path.exists());
            let said: Result<Vec<String>, Failure> = files
                .map(|path| {
                    let of_file = |given: &&SettingValue| matches!(&given.origin, Origin::File { path: of, .. } if of == path);
                    let given: Vec<SettingValue> = given.iter().filter(of_file).cloned().collect();
                    describe(path, &given)
                })
                .collect();
            said?.concat()
        }
    };
    if said.is_empty() {
        note("there is no settings file: the defaults and the environment hold, and are valid");
    }
    print(said.as_bytes())?;
    Ok(Exit::Found)
}

/// A line about a file that is valid. Sections of proxies are read, too.
fn describe(path: &Path, given: &[SettingValue]) -> Result<String, Failure> {
    let proxies = read_proxies(path)?;
    let counted = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let mut said = format!(
        "{}: valid, {}",
        path.display(),
        counted(given.len(), "setting")
    );
    if !proxies.is_empty() {
        said += &format!(", {} of a proxy", counted(proxies.len(), "section"));
    }
    Ok(said + "\n")
}

fn show(args: &ConfigShow) -> Result<Exit, Failure> {
    let node = args.serve.node();
    let given = gather(node.config.as_deref(), node.given.clone(), &surroundings())?;
    let mut all = effective(&given);
    all.retain(|given| !args.changed || given.origin != Origin::Default);
    let out = match args.table.output {
        TableFormat::Json => {
            let lines = all.iter().map(|given| {
                let line = json!({
                    "name": given.name,
                    "value": shown(given),
                    "origin": given.origin.to_string(),
                });
                format!("{line}\n")
            });
            lines.collect::<String>().into_bytes()
        }
        TableFormat::Text => {
            let columns = ["setting", "value", "origin"].map(|name| (name, false));
            let mut table = Table::new(&columns);
            for given in &all {
                let origin = given.origin.to_string();
                table.row(vec![given.name.to_owned(), shown(given), origin]);
            }
            let mut out = Vec::new();
            table.write(&mut out);
            out
        }
    };
    print(&out)?;
    Ok(if all.is_empty() {
        Exit::None
    } else {
        Exit::Found
    })
}

/// A value as it may be printed.
fn shown(given: &SettingValue) -> String {
    if WITH_SECRETS.contains(&given.name) && given.origin != Origin::Default {
        "…".to_owned()
    } else {
        given.text.clone()
    }
}

fn surroundings() -> Environment<'static> {
    Environment {
        variable: &variable,
        is_root: rustix::process::geteuid().is_root(),
    }
}
