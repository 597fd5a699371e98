//! `logpond journal`: records as journalctl asks for them and prints them.
//!
//! What an option means is what `journalctl(1)` says. It differs where a server is not a machine: there
//! are records of many machines, of which a boot is one's; times are those of the records, so that is
//! also their order; and that there is nothing is said on standard error and by the exit status.

mod ask;
mod boots;
mod environment;
mod files;
mod print;
mod source;
mod upkeep;
mod values;

use self::ask::Question;
use self::source::Source;
use super::{Exit, Failure};
use crate::cli::Journal;

pub(super) fn run(args: Journal) -> Result<Exit, Failure> {
    if let Some(done) = upkeep::run(&args)? {
        return Ok(done);
    }
    let mut source = Source::open(&args)?;
    let mut question = Question::new(&args)?;
    if args.list_boots {
        return boots::list(&question, &mut source, args.output);
    }
    if args.boot.is_some() || args.dmesg {
        boots::choose(&mut question, &mut source)?;
    }
    if let Some(name) = &args.field {
        return values::of_field(name, &question, &mut source);
    }
    if args.field_names {
        return values::names(&question, &mut source);
    }
    print::run(&args, &question, &mut source)
}
