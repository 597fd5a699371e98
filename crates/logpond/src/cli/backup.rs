//! `logpond backup` and `logpond restore` as they are typed.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use logpond_bucket::Location;

use super::TableOutput;

/// Flags of `logpond backup`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "It works beside a running server, and uploads only what is not there yet. Not in it: the records of the \
                  journal file that is being written (of the last half minute, it says how many), what is only in the \
                  bucket of `serve --bucket`, and a node's identity.\n\n\
                  Try:  logpond backup --to s3://my-logs/backup-of-ash\n\n\
                  Exit status: 0 done, 1 done, but files of the data directory are damaged, 2 error."
)]
pub struct Backup {
    /// What is done with backups; without any, one is made.
    #[command(subcommand)]
    pub command: Option<BackupCommand>,
    /// Where to: s3://NAME/PREFIX, gs://…, az://… or file:DIRECTORY; a place for each data directory.
    #[arg(long, value_name = "URL", required = true)]
    pub to: Option<Location>,
    /// Data directory [default: as for serve].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data: Option<String>,
    /// Settings file [default: as for serve].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
}

/// What is done with backups.
#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// List the snapshots of a place.
    List(BackupList),
    /// Read all files of a snapshot and compare them with their checksums.
    Verify(BackupVerify),
    /// Remove old snapshots, and the files that no snapshot needs any more.
    Prune(BackupPrune),
}

/// Flags of `logpond backup list`.
#[derive(Debug, Args)]
pub struct BackupList {
    /// Where the backups are.
    #[arg(long, value_name = "URL")]
    pub from: Location,
    /// How to print.
    #[command(flatten)]
    pub table: TableOutput,
}

/// Flags of `logpond backup verify`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 no damage, 1 damage, 2 error.")]
pub struct BackupVerify {
    /// Where the backups are.
    #[arg(long, value_name = "URL")]
    pub from: Location,
    /// Which snapshot.
    #[arg(long, value_name = "NAME", default_value = "latest")]
    pub snapshot: String,
}

/// Flags of `logpond backup prune`.
#[derive(Debug, Args)]
#[command(
    after_help = "Files stay until they have been in the store for a day, and while a backup is running."
)]
pub struct BackupPrune {
    /// Where the backups are.
    #[arg(long, value_name = "URL")]
    pub from: Location,
    /// How many of the newest snapshots stay.
    #[arg(long, value_name = "N")]
    pub keep: NonZeroUsize,
}

/// Flags of `logpond restore`.
#[derive(Debug, Args)]
#[command(
    after_help = "One that was interrupted goes on when it is run again; until then no server starts there.\n\n\
                  Exit status: 0 done, 1 done, but some of it is damaged, 2 error."
)]
pub struct Restore {
    /// Where the backups are: s3://NAME/PREFIX, gs://…, az://… or file:DIRECTORY.
    #[arg(long, value_name = "URL")]
    pub from: Location,
    /// Which snapshot; `logpond backup list` names them.
    #[arg(long, value_name = "NAME", default_value = "latest")]
    pub snapshot: String,
    /// The directory to restore into, empty or new.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data: PathBuf,
    /// Do not read everything again in the end, as `logpond verify` does.
    #[arg(long)]
    pub no_verify: bool,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::{BackupCommand, Cli, Command};

    #[test]
    fn a_backup_is_made_unless_something_else_is_said() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' '));
        let backup = |line: &str| match parse(line).unwrap().command {
            Command::Backup(backup) => backup,
            other => panic!("{other:?}"),
        };
        let made = backup("logpond backup --to file:/place --data /data");
        assert!(made.command.is_none());
        assert_eq!(made.to.unwrap().to_string(), "file:/place");
        let listed = backup("logpond backup list --from file:/place");
        assert!(matches!(listed.command, Some(BackupCommand::List(_))));
        for line in [
            "logpond backup",
            "logpond backup --to place",
            "logpond backup --to file:/place list --from file:/place",
            "logpond backup prune --from file:/place --keep 0",
            "logpond restore --from file:/place",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
