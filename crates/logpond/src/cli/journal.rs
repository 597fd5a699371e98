//! `logpond journal` as it is typed: the options of journalctl.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, ValueHint};

use super::{Server, When};
use logpond_render::journal::Format;

/// Flags of `logpond journal`.
#[derive(Debug, Args)]
#[command(
    args_override_self = true,
    after_help = "Matches: FIELD=VALUE side by side must all hold, of one field one of them; + is an \
                  alternative; a path is the program or device there. Beside what journalctl has: \
                  FIELD!=VALUE, FIELD=~REGEX, FIELD!~REGEX.\n\
                  Exit status: 0 found, 1 none in a complete answer, 2 error, 3 answer incomplete, or records lost for good."
)]
pub struct Journal {
    /// FIELD=VALUE, a path, or +.
    #[arg(value_name = "MATCH")]
    pub matches: Vec<OsString>,
    /// Records of a unit, and about it; a pattern as of a shell may be given.
    #[arg(short = 'u', long = "unit", value_name = "UNIT")]
    pub units: Vec<String>,
    /// Records of a unit of a user's service manager.
    #[arg(long = "user-unit", value_name = "UNIT")]
    pub user_units: Vec<String>,
    /// Records of programs that call themselves so.
    #[arg(short = 't', long = "identifier", value_name = "NAME")]
    pub identifiers: Vec<String>,
    /// No records of programs that call themselves so.
    #[arg(
        short = 'T',
        long = "exclude-identifier",
        value_name = "NAME",
        hide_short_help = true
    )]
    pub excluded: Vec<String>,
    /// Records of a level (emerg, alert, crit, err, warning, notice, info, debug, or 0 to 7) and more
    /// urgent ones; FROM..TO is a range.
    #[arg(short = 'p', long, value_name = "LEVEL")]
    pub priority: Option<String>,
    /// Records of facilities (kern, user, daemon, auth, …, or 0 to 23); help lists them.
    #[arg(long = "facility", value_name = "NAME,...", value_delimiter = ',')]
    pub facilities: Vec<String>,
    /// Records whose message this regular expression matches; without capitals in it case is ignored.
    #[arg(short = 'g', long, value_name = "REGEX")]
    pub grep: Option<String>,
    /// Whether --grep tells capitals from small letters.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "yes",
        hide_short_help = true
    )]
    pub case_sensitive: Option<String>,
    /// Records of one boot: an id, 0 or nothing for the last, -1 for the one before, 1 for the first.
    #[arg(
        short = 'b',
        long,
        value_name = "ID|N",
        num_args = 0..=1,
        default_missing_value = "",
        allow_negative_numbers = true
    )]
    pub boot: Option<OsString>,
    /// Messages of the kernel of the last boot, or that of -b.
    #[arg(short = 'k', long)]
    pub dmesg: bool,
    /// Earliest time: yesterday, "2 hours ago", -1h, 09:00, "2026-11-21 10:00", @epoch.
    #[arg(short = 'S', long, value_name = "TIME", allow_hyphen_values = true)]
    pub since: Option<String>,
    /// Latest time.
    #[arg(short = 'U', long, value_name = "TIME", allow_hyphen_values = true)]
    pub until: Option<String>,
    /// The newest N only, 10 if there is no number; +N is the oldest N, all is no limit.
    #[arg(short = 'n', long, value_name = "N", num_args = 0..=1, default_missing_value = "")]
    pub lines: Option<OsString>,
    /// Newest first.
    #[arg(short = 'r', long, conflicts_with = "follow")]
    pub reverse: bool,
    /// Print the newest 10 (or -n N), then new records as they arrive.
    #[arg(short = 'f', long)]
    pub follow: bool,
    /// With --follow: print all records, not the newest 10.
    #[arg(long, hide_short_help = true)]
    pub no_tail: bool,
    /// Begin at the end, in the pager; of the newest 1000.
    #[arg(short = 'e', long, conflicts_with = "follow")]
    pub pager_end: bool,
    /// How to print.
    #[arg(
        short = 'o',
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "short",
        hide_possible_values = true
    )]
    pub output: Format,
    /// Only these fields, in the formats that have fields.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub output_fields: Vec<String>,
    /// Print the values of a field, each once.
    #[arg(short = 'F', long = "field", value_name = "NAME")]
    pub field: Option<String>,
    /// Print the names of all fields.
    #[arg(short = 'N', long = "fields")]
    pub field_names: bool,
    /// Print the boots.
    #[arg(long)]
    pub list_boots: bool,
    /// Begin at the record with this cursor.
    #[arg(short = 'c', long, value_name = "CURSOR", conflicts_with_all = ["after_cursor", "cursor_file"])]
    pub cursor: Option<String>,
    /// Begin behind the record with this cursor.
    #[arg(long, value_name = "CURSOR", conflicts_with = "cursor_file")]
    pub after_cursor: Option<String>,
    /// Begin behind the cursor in this file, and write that of the last record to it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cursor_file: Option<PathBuf>,
    /// Print the cursor of the last record below it.
    #[arg(long)]
    pub show_cursor: bool,
    /// Read these journal files, exports or JSON instead of a server; patterns may be given.
    #[arg(short = 'i', long = "file", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<String>,
    /// Read the journal files below this directory instead of a server.
    #[arg(short = 'D', long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "files")]
    pub directory: Option<PathBuf>,
    /// The server.
    #[command(flatten)]
    pub server: Server,
    /// How it looks.
    #[command(flatten)]
    pub looks: JournalLooks,
    /// What else journalctl can be told.
    #[command(flatten)]
    pub upkeep: JournalUpkeep,
}

/// How `logpond journal` prints.
#[derive(Debug, Args)]
pub struct JournalLooks {
    /// Show fields whole, whatever is in them.
    #[arg(short = 'a', long)]
    pub all: bool,
    /// Cut long lines.
    #[arg(long, hide_short_help = true)]
    pub no_full: bool,
    /// Do not cut long lines; this is the default.
    #[arg(short = 'l', long, conflicts_with = "no_full", hide_short_help = true)]
    pub full: bool,
    /// Print no notes, neither of boots nor that there is nothing.
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Print times in UTC.
    #[arg(long)]
    pub utc: bool,
    /// Send control characters of records to a terminal as they are.
    #[arg(long = "unsafe", hide_short_help = true)]
    pub control_characters: bool,
    /// Print no hosts.
    #[arg(long)]
    pub no_hostname: bool,
    /// Use no pager.
    #[arg(long)]
    pub no_pager: bool,
    /// Colours.
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        hide_short_help = true
    )]
    pub color: When,
    /// Explain messages by a catalogue; there is none, so this is only accepted.
    #[arg(short = 'x', long, hide_short_help = true)]
    pub catalog: bool,
    /// Records of all machines; this is the default.
    #[arg(short = 'm', long, hide_short_help = true)]
    pub merge: bool,
    /// Records of system services and the kernel only.
    #[arg(long, hide_short_help = true)]
    pub system: bool,
    /// Records of the user who runs this only.
    #[arg(long, conflicts_with = "system", hide_short_help = true)]
    pub user: bool,
    /// Records of the machine with this name.
    #[arg(short = 'M', long, value_name = "HOSTNAME", hide_short_help = true)]
    pub machine: Option<String>,
    /// Records of this namespace; +NAME is also those of none, * is all, as without it.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub namespace: Option<String>,
}

/// What else is asked of journalctl than records.
#[derive(Debug, Args)]
pub struct JournalUpkeep {
    /// Print how much disk a server's records take.
    #[arg(long)]
    pub disk_usage: bool,
    /// Check what is read: the files of --file or --directory, or a data directory.
    #[arg(long)]
    pub verify: bool,
    /// Print what files there are: of --file, or of the server.
    #[arg(long, hide_short_help = true)]
    pub header: bool,
    /// Wait until all that was received is on disk: what was acknowledged always is.
    #[arg(long, hide_short_help = true)]
    pub sync: bool,
    /// Move records from memory to disk: there are none in memory.
    #[arg(long, hide_short_help = true)]
    pub flush: bool,
    /// Begin a new file; a server does when it is due.
    #[arg(long, hide_short_help = true)]
    pub rotate: bool,
    /// Remove the oldest files of the server until no more than this is left.
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    pub vacuum_size: Option<String>,
    /// Remove files of the server that have no record that was received within this time.
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub vacuum_time: Option<String>,
    /// Remove the oldest files of the server until no more than this many are left.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub vacuum_files: Option<String>,
    /// Not available: there is no catalogue.
    #[arg(long, visible_aliases = ["dump-catalog", "update-catalog"], action = ArgAction::SetTrue, hide_short_help = true)]
    pub list_catalog: bool,
}
