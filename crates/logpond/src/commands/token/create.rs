//! `logpond token create`: makes a token and prints it, once.

use logpond_search::size::parse_duration;

use super::paths;
use crate::cli::TokenCreate;
use crate::commands::listing::print;
use crate::commands::{Exit, Failure};
use logpond_host::clock;
use logpond_host::disk::RealDisk;
use logpond_host::terminal::note;
use logpond_listen::tokens::{Bounds, Entry, Token, read_label, update};

pub(super) fn run(args: &TokenCreate) -> Result<Exit, Failure> {
    let now = clock::now();
    let expires = match &args.expires {
        None => None,
        Some(text) => {
            let lifetime = parse_duration(text).map_err(|error| format!("--expires: {error}"))?;
            if lifetime <= 0 {
                return Err("--expires: expected a duration such as 90d".into());
            }
            Some(now.saturating_add(lifetime))
        }
    };
    let labels = args.label.iter().map(|text| read_label(text));
    let bounds = Bounds::new(args.only.clone(), labels.collect::<Result<_, _>>()?)?;
    let paths = paths(&args.file)?;
    if paths.tokens.parent() == Some(&paths.data) {
        // Before the first start of the server there is no directory yet.
        RealDisk::create(&paths.data)?;
    }
    let token = Token::mint().map_err(|error| format!("no randomness for a token: {error}"))?;
    let entry = Entry::new(&token, args.name.clone(), args.role, now, expires);
    let entry = entry.bound_by(bounds)?;
    update(&paths.tokens, |tokens| tokens.add(entry))?;
    print(format!("{}\n", token.expose()).as_bytes())?;
    note(&format!(
        "token {} of role {} is in {}; it is not shown again. Servers take it within a second.\n\
         Use it by --token-file FILE or LOGPOND_TOKEN, or as `Authorization: Bearer TOKEN`.",
        token.id(),
        args.role.as_str(),
        paths.tokens.display()
    ));
    Ok(Exit::Found)
}
