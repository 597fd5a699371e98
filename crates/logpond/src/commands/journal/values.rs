//! `-F` and `-N`: the values of a field, and the names of fields. Unlike journalctl's, they are those of
//! the records that the other options choose.

use std::borrow::Cow;
use std::collections::BTreeSet;

use logpond_protocol::intake::journal_entry;
use logpond_record::{TimeRange, Value};
use logpond_search::journal::{self, MESSAGE, ValuesAt, field_name, is_journal_name};
use logpond_search::order::Direction;
use logpond_search::query::Filter;

use super::ask::{Question, parameters};
use super::source::{RecordQuery, Source};
use crate::commands::listing::{exit, print, rows, text};
use crate::commands::{Exit, Failure};
use logpond_client::{Client, Trailer};
use logpond_host::terminal::note;
use logpond_render::journal::Entry;

/// Values that a server counts at most.
const VALUES_MAX: usize = 100_000;

/// `-F`
pub(super) fn of_field(
    name: &str,
    question: &Question,
    source: &mut Source,
) -> Result<Exit, Failure> {
    let mut found = BTreeSet::new();
    let range = question.range();
    let trailer = match source {
        Source::Files(_) => each_entry(question, source, &mut |entry| {
            let boot = entry.boot_id.as_ref().filter(|_| name == "_BOOT_ID");
            found.extend(boot.map(|id| id.clone().into_bytes()));
            found.extend(entry.values(name).map(<[u8]>::to_vec));
        })?,
        Source::Server(client) => {
            let mut whole = Trailer::whole();
            for at in journal::values_of(name) {
                let filter = Filter::and([at.of.clone(), question.filter.clone()]);
                let (values, trailer) = counted(client, &at, &filter, range)?;
                found.extend(values);
                whole.rows += trailer.rows;
                whole.newest.clone_from(&trailer.newest);
                whole.lack_too(trailer);
            }
            whole
        }
    };
    let mut out = Vec::new();
    for value in &found {
        out.extend_from_slice(value);
        out.push(b'\n');
    }
    print(&out)?;
    let none = format!("no records have a field {name}");
    Ok(exit(found.is_empty(), &trailer, &none))
}

/// The values of a field as they are shown, lists of values one by one; the most frequent first.
pub(super) fn counted(
    client: &Client,
    at: &ValuesAt,
    filter: &Filter,
    range: TimeRange,
) -> Result<(Vec<Vec<u8>>, Trailer), Failure> {
    let field = &*at.field;
    let mut asked = parameters(filter, range);
    asked.push(("field", field.to_owned()));
    asked.push(("n", VALUES_MAX.to_string()));
    let (rows, trailer) = rows(client.get("/api/v1/top", &asked)?)?;
    if rows.len() >= VALUES_MAX {
        note(&format!(
            "logpond: of {field} only the {VALUES_MAX} most frequent values are listed"
        ));
    }
    let mut values = Vec::new();
    let mut take = |value: &[u8]| values.extend(at.shown(value).map(Cow::into_owned));
    for row in &rows {
        let value = text(row, "value");
        let list =
            (at.has_lists() && value.starts_with('[')).then(|| Value::Json((&*value).into()));
        let mut is_list = false;
        if let Some(list) = &list {
            let named = [(field, list)].into_iter();
            journal_entry::fields_of(named, b"", |_, value| {
                is_list = true;
                take(value);
            });
        }
        if !is_list {
            take(value.as_bytes());
        }
    }
    Ok((values, trailer))
}

/// `-N`
pub(super) fn names(question: &Question, source: &mut Source) -> Result<Exit, Failure> {
    let mut found = BTreeSet::new();
    let trailer = match source {
        Source::Files(_) => each_entry(question, source, &mut |entry| {
            found.extend(entry.boot_id.iter().map(|_| "_BOOT_ID".to_owned()));
            found.extend(entry.fields.iter().map(|(name, _)| name.clone()));
        })?,
        Source::Server(client) => {
            let theirs = journal::of_journals();
            let is_shown = |name: &str| is_journal_name(name) && !name.starts_with("__");
            let mut trailer = names_of(client, theirs.clone(), question, &mut |name| {
                found.extend(is_shown(name).then(|| name.to_owned()));
            })?;
            let more = names_of(client, Filter::negate(theirs), question, &mut |name| {
                found.insert(field_name(name).into_owned());
            })?;
            if trailer.rows + more.rows > 0 {
                found.insert(MESSAGE.to_owned());
            }
            trailer.newest.clone_from(&more.newest);
            trailer.lack_too(more);
            trailer
        }
    };
    let names: Vec<String> = found.into_iter().map(|name| name + "\n").collect();
    print(names.concat().as_bytes())?;
    Ok(exit(names.is_empty(), &trailer, "no records have fields"))
}

fn names_of(
    client: &Client,
    filter: Filter,
    question: &Question,
    each: &mut dyn FnMut(&str),
) -> Result<Trailer, Failure> {
    let filter = Filter::and([filter, question.filter.clone()]);
    let asked = parameters(&filter, question.range());
    let (rows, trailer) = rows(client.get("/api/v1/fields", &asked)?)?;
    for row in &rows {
        each(&text(row, "field"));
    }
    Ok(trailer)
}

fn each_entry(
    question: &Question,
    source: &Source,
    each: &mut dyn FnMut(&Entry),
) -> Result<Trailer, Failure> {
    let wanted = RecordQuery {
        filter: &question.filter,
        range: question.range(),
        direction: Direction::Forward,
        behind: None,
        limit: None,
    };
    source.rows(&wanted, &mut |row| {
        each(&Entry::of(&row));
        Ok(())
    })
}
