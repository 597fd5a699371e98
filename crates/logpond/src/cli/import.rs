//! `logpond import` as it is typed.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueHint};

use super::Servers;

/// The most records of a page, as Loki and Elasticsearch allow without settings: 5,000 and 10,000.
const PAGE_SIZE_DEFAULT: &str = "5000";
const PAGE_SIZES: std::ops::RangeInclusive<u64> = 16..=10_000;

/// Flags of `logpond import`.
#[derive(Debug, Args)]
#[command(
    mut_arg("addr", |addr| addr.help("Servers; one takes everything until it fails")),
    group(ArgGroup::new("other").args(["from_loki", "from_elasticsearch"])),
    after_help = "Reads journal files, what `journalctl -o export` prints, and what `journalctl -o json \
                  --all` prints. Entries with a cursor, as all of these have, are at the server once, \
                  however often they are imported.\n\
                  With --from-loki and --from-elasticsearch it reads another system. Started again after any end, \
                  such an import continues from its --state, and each record is stored once.\n\
                  Exit status: 0 everything was taken, 2 something was not."
)]
pub struct Import {
    /// Files, and directories with files named *.journal; '-' or none is standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath, conflicts_with = "other")]
    pub inputs: Vec<PathBuf>,
    /// Import from another system.
    #[command(flatten)]
    pub other: OtherSystem,
    /// The servers.
    #[command(flatten)]
    pub servers: Servers,
    /// A field for all records.
    #[arg(short = 'l', long, value_name = "NAME=VALUE")]
    pub label: Vec<String>,
    /// The zone of times that say none [default: that of the server].
    #[arg(
        long,
        value_name = "ZONE",
        allow_hyphen_values = true,
        conflicts_with = "other"
    )]
    pub timezone: Option<String>,
    /// Give up when no server took entries, or the source gave none, for this long.
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub give_up_after: String,
    /// Do not print progress and totals.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Flags of an import from another system.
#[derive(Debug, Args)]
#[command(next_help_heading = "From another system")]
pub struct OtherSystem {
    /// Import from Loki at this address.
    #[arg(long, value_name = "URL", requires = "since")]
    pub from_loki: Option<String>,
    /// Import from Elasticsearch or OpenSearch at this address.
    #[arg(long, value_name = "URL", requires = "index")]
    pub from_elasticsearch: Option<String>,
    /// The indexes and data streams to read: 'logs-*,app-2026.11.*'.
    #[arg(long, value_name = "NAMES", requires = "from_elasticsearch")]
    pub index: Option<String>,
    /// The records to import: a LogQL query, or a query_string of Elasticsearch [default: all].
    #[arg(long, value_name = "QUERY", requires = "other")]
    pub query: Option<String>,
    /// The field with the time of documents.
    #[arg(
        long,
        value_name = "FIELD",
        default_value = "@timestamp",
        requires = "from_elasticsearch"
    )]
    pub time_field: String,
    /// Earliest time, as for `logpond query`. Loki needs one.
    #[arg(
        short = 'S',
        long,
        value_name = "TIME",
        alias = "from",
        allow_hyphen_values = true,
        requires = "other"
    )]
    pub since: Option<String>,
    /// Latest time, excluded [default: of Loki now, of Elasticsearch none].
    #[arg(
        short = 'U',
        long,
        value_name = "TIME",
        alias = "to",
        allow_hyphen_values = true,
        requires = "other"
    )]
    pub until: Option<String>,
    /// The file with the position [default: a file for each source and selection in
    /// $XDG_STATE_HOME/logpond].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "other")]
    pub state: Option<PathBuf>,
    /// The most records that are read at once.
    #[arg(
        long,
        value_name = "COUNT",
        default_value = PAGE_SIZE_DEFAULT,
        value_parser = page_size,
        requires = "other"
    )]
    pub page_size: u64,
    /// The user at the source.
    #[arg(long, value_name = "NAME", requires = "source_password_file")]
    pub source_user: Option<String>,
    /// A file with the password of --source-user.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "source_user")]
    pub source_password_file: Option<PathBuf>,
    /// A file with a bearer token for the source.
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        requires = "other",
        conflicts_with_all = ["source_user", "source_api_key_file"]
    )]
    pub source_token_file: Option<PathBuf>,
    /// A file with an API key of Elasticsearch: id:key, or both as Base64.
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        requires = "from_elasticsearch",
        conflicts_with = "source_user"
    )]
    pub source_api_key_file: Option<PathBuf>,
    /// The tenant at the source, for X-Scope-OrgID.
    #[arg(long, value_name = "ID", requires = "other")]
    pub source_org_id: Option<String>,
    /// Authorities to trust at a source with https, in PEM [default: those of the system].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "other")]
    pub source_ca_file: Option<PathBuf>,
}

fn page_size(text: &str) -> Result<u64, String> {
    let number = text.parse::<u64>().ok();
    let number = number.filter(|number| PAGE_SIZES.contains(number));
    number.ok_or_else(|| {
        format!(
            "expected a number from {} to {}",
            PAGE_SIZES.start(),
            PAGE_SIZES.end()
        )
    })
}
