//! Boots: which there are, and which one is meant.
//!
//! Boots are in the order of their first records, of all machines, or of the one that the options name.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use logpond_record::{TimeRange, Timestamp, cast};
use logpond_search::journal;
use logpond_search::order::Direction;
use logpond_search::query::Filter;

use super::ask::{Boot, Question};
use super::source::{RecordQuery, Source};
use super::values;
use crate::commands::listing::{lacks, print};
use crate::commands::{Exit, Failure};
use logpond_client::Trailer;
use logpond_render::Row;
use logpond_render::journal::{Entry, Format, pretty_time};

/// Boots that are listed; each takes two questions to a server.
const BOOTS_MAX: usize = 10_000;

/// One boot.
struct BootEntry {
    id: String,
    /// Times of its first and last record, in microseconds.
    first_us: i64,
    last_us: i64,
}

/// `--list-boots`, in the forms that journalctl has for tables.
pub(super) fn list(
    question: &Question,
    source: &mut Source,
    format: Format,
) -> Result<Exit, Failure> {
    let (boots, trailer) = all(&question.machine, source)?;
    let last = cast::low_i64(boots.len()) - 1;
    let mut numbered: Vec<(i64, &BootEntry)> = (-last..).zip(&boots).collect();
    if question.is_reversed {
        numbered.reverse();
    }
    let out = match format {
        Format::Json => objects(&numbered) + "\n",
        Format::JsonSeq => format!("\u{1e}{}\n", objects(&numbered)),
        Format::JsonSse => format!("data: {}\n\n", objects(&numbered)),
        Format::JsonPretty => pretty_objects(&numbered),
        _ => {
            let has_head = !question.is_quiet && !format.is_data();
            table(&numbered, has_head, &question.zone)
        }
    };
    if !boots.is_empty() {
        print(out.as_bytes())?;
    }
    Ok(match (lacks(&trailer), boots.is_empty()) {
        (Some(lacking), _) => lacking,
        (None, true) => Exit::None,
        (None, false) => Exit::Found,
    })
}

fn table(boots: &[(i64, &BootEntry)], has_head: bool, zone: &TimeZone) -> String {
    let mut width = (1 - cast::low_i64(boots.len())).to_string().len();
    let mut out = String::new();
    if has_head {
        width = width.max(3);
        let (index, id, first) = ("IDX", "BOOT ID", "FIRST ENTRY");
        out = format!("{index:>width$} {id:<32} {first:<27} LAST ENTRY\n");
    }
    for (index, boot) in boots {
        let [first, end] = [boot.first_us, boot.last_us].map(|us| pretty_time(us, zone));
        out.push_str(&format!("{index:>width$} {} {first:<27} {end}\n", boot.id));
    }
    out
}

/// The members of a boot's object, in the order in which journalctl has them.
fn members((index, boot): (i64, &BootEntry)) -> [(&'static str, serde_json::Value); 4] {
    [
        ("index", index.into()),
        ("boot_id", boot.id.as_str().into()),
        ("first_entry", boot.first_us.into()),
        ("last_entry", boot.last_us.into()),
    ]
}

fn objects(boots: &[(i64, &BootEntry)]) -> String {
    let object = |boot: &(i64, &BootEntry)| {
        let members = members(*boot).map(|(name, value)| format!("\"{name}\":{value}"));
        format!("{{{}}}", members.join(","))
    };
    let objects: Vec<String> = boots.iter().map(object).collect();
    format!("[{}]", objects.join(","))
}

fn pretty_objects(boots: &[(i64, &BootEntry)]) -> String {
    let object = |boot: &(i64, &BootEntry)| {
        let members = members(*boot).map(|(name, value)| format!("\t\t\"{name}\" : {value}"));
        format!("\t{{\n{}\n\t}}", members.join(",\n"))
    };
    let objects: Vec<String> = boots.iter().map(object).collect();
    format!("[\n{}\n]\n", objects.join(",\n"))
}

/// Finds the boot that is meant, and asks for its records only.
pub(super) fn choose(question: &mut Question, source: &mut Source) -> Result<(), Failure> {
    let Some(boot) = &question.boot else {
        return Ok(());
    };
    let id = match boot {
        Boot {
            id: Some(id),
            offset: 0,
        } => id.clone(),
        Boot {
            id: None,
            offset: 0,
        } => last(&question.machine, source)?
            .ok_or("there is no record that says its boot (-b, -k)")?,
        boot => {
            let (boots, trailer) = all(&question.machine, source)?;
            lacks(&trailer);
            if !trailer.complete {
                return Err("boots cannot be counted: the answer is not complete".into());
            }
            nth(&boots, boot)?
        }
    };
    let filter = std::mem::replace(&mut question.filter, Filter::All);
    question.filter = Filter::and([journal::equal("_BOOT_ID", id.as_bytes()), filter]);
    Ok(())
}

fn nth(boots: &[BootEntry], boot: &Boot) -> Result<String, Failure> {
    let place = match &boot.id {
        Some(id) => {
            let at = boots.iter().position(|known| known.id == *id);
            let at = at.ok_or_else(|| format!("there is no record of boot {id}"))?;
            cast::low_i64(at) + boot.offset
        }
        // Those in the future are counted from the first one, as journalctl does.
        None if boot.offset > 0 => boot.offset - 1,
        None => cast::low_i64(boots.len()) - 1 + boot.offset,
    };
    let found = usize::try_from(place).ok().and_then(|at| boots.get(at));
    match found {
        Some(found) => Ok(found.id.clone()),
        None => Err(format!(
            "there is no such boot ({}): records are of {} (--list-boots)",
            boot.offset,
            logpond_render::quantity::counted(boots.len() as u64, "boot")
        )
        .into()),
    }
}

/// The boot of the newest record.
fn last(machine: &Filter, source: &mut Source) -> Result<Option<String>, Failure> {
    let filter = Filter::and([journal::exists("_BOOT_ID"), machine.clone()]);
    let (row, _) = source.first(&filter, TimeRange::ALL, Direction::Backward)?;
    Ok(row.and_then(|row| Entry::of(&row).boot_id))
}

/// All boots by their first record, and what is lacking of them.
fn all(machine: &Filter, source: &mut Source) -> Result<(Vec<BootEntry>, Trailer), Failure> {
    let (mut boots, trailer) = match source {
        Source::Files(_) => of_rows(machine, source)?,
        Source::Server(client) => {
            let mut ids = Vec::new();
            let mut whole = Trailer::whole();
            for at in journal::values_of("_BOOT_ID") {
                let (found, trailer) = values::counted(client, &at, machine, TimeRange::ALL)?;
                whole.lack_too(trailer);
                ids.extend(found);
            }
            if ids.len() > BOOTS_MAX {
                whole.complete = false;
                whole
                    .missing
                    .push(format!("boots beyond {BOOTS_MAX}").into());
            }
            let mut boots = Vec::new();
            for id in ids.into_iter().take(BOOTS_MAX) {
                let id = String::from_utf8_lossy(&id).into_owned();
                let same = journal::equal("_BOOT_ID", id.as_bytes());
                let filter = Filter::and([same, machine.clone()]);
                let mut end = |direction| -> Result<i64, Failure> {
                    let (row, trailer) = source.first(&filter, TimeRange::ALL, direction)?;
                    whole.lack_too(trailer);
                    Ok(row.as_ref().map_or(0, time_us))
                };
                boots.push(BootEntry {
                    first_us: end(Direction::Forward)?,
                    last_us: end(Direction::Backward)?,
                    id,
                });
            }
            (boots, whole)
        }
    };
    boots.sort_by(|a, b| (a.first_us, &a.id).cmp(&(b.first_us, &b.id)));
    Ok((boots, trailer))
}

fn time_us(row: &Row<'_>) -> i64 {
    row.time.unwrap_or(Timestamp(0)).0.div_euclid(1000)
}

fn of_rows(machine: &Filter, source: &Source) -> Result<(Vec<BootEntry>, Trailer), Failure> {
    let mut found: BTreeMap<String, BootEntry> = BTreeMap::new();
    let wanted = RecordQuery {
        filter: machine,
        range: TimeRange::ALL,
        direction: Direction::Forward,
        behind: None,
        limit: None,
    };
    let trailer = source.rows(&wanted, &mut |row| {
        if let Some(id) = Entry::of(&row).boot_id {
            let us = time_us(&row);
            let boot = found.entry(id.clone()).or_insert(BootEntry {
                id,
                first_us: us,
                last_us: us,
            });
            boot.last_us = us;
        }
        Ok(())
    })?;
    Ok((found.into_values().collect(), trailer))
}
