//! `logpond token`: makes, lists and revokes tokens, in the file that servers read.
//!
//! It works on the file and asks no server, so it works beside a running one and without one.

mod create;
mod list;
mod revoke;

use std::path::{Path, PathBuf};

use logpond_segment::journal;

use super::{Exit, Failure, variable};
use crate::cli::{Token, TokenFile};
use logpond_host::terminal::note;
use logpond_settings::{Environment, Paths, TOKENS_NAME, gather};

pub(super) fn run(token: &Token) -> Result<Exit, Failure> {
    match token {
        Token::Create(args) => create::run(args),
        Token::List(args) => list::run(args),
        Token::Revoke(args) => revoke::run(args),
    }
}

/// Where a server of the system keeps its data.
const OF_SYSTEM: &str = "/var/lib/logpond";

/// Where the tokens are: as the server that has these settings finds them.
///
/// Without settings each user has a data directory of their own, but there is usually one server: its file is
/// meant. So a user who has no server takes that of the system, and root is told of the server of the user who
/// became root.
fn paths(file: &TokenFile) -> Result<Paths, Failure> {
    let is_root = rustix::process::geteuid().is_root();
    let surroundings = Environment {
        variable: &variable,
        is_root,
    };
    let flags = [("data", &file.data), ("tokens", &file.tokens)];
    let flags = flags
        .into_iter()
        .filter_map(|(name, text)| Some((name, text.clone()?)));
    let given = gather(file.config.as_deref(), flags.collect(), &surroundings)?;
    let paths = Paths::resolve(&given, &surroundings)?;
    let is_told = given
        .iter()
        .any(|given| ["data", "tokens"].contains(&given.name));
    if is_told {
        return Ok(paths);
    }
    let of_other = if is_root {
        home_before_sudo().map(|home| home.join(".local/share/logpond"))
    } else {
        Some(PathBuf::from(OF_SYSTEM))
    };
    let Some(other) = of_other.filter(|other| is_meant(&paths.data, other)) else {
        return Ok(paths);
    };
    if is_root {
        note(&format!(
            "logpond: no server has used {} yet, but one has used {}: if that is meant, make the token as the \
             user who runs it, or name it by --data",
            paths.data.display(),
            other.display()
        ));
        return Ok(paths);
    }
    Ok(Paths {
        tokens: other.join(TOKENS_NAME),
        data: other,
    })
}

/// Whether a server has used the other directory, and none this one.
fn is_meant(own: &Path, other: &Path) -> bool {
    // What is in it may be hidden from this user.
    let is_there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
    own != other && is_there(other) && !is_there(&own.join(journal::DIRECTORY))
}

/// The home of the user who became root by sudo.
fn home_before_sudo() -> Option<PathBuf> {
    let user = variable("SUDO_USER")?.into_string().ok()?;
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut parts = line.split(':');
        (parts.next()? == user).then(|| parts.nth(4).map(PathBuf::from))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_server_that_there_is_counts() {
        let directory = tempfile::tempdir().unwrap();
        let [own, other] = ["own", "other"].map(|name| directory.path().join(name));
        assert!(!is_meant(&own, &other));
        std::fs::create_dir(&other).unwrap();
        assert!(is_meant(&own, &other) && !is_meant(&other, &other));
        std::fs::create_dir_all(own.join(journal::DIRECTORY)).unwrap();
        assert!(!is_meant(&own, &other));
    }
}
