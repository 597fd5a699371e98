//! Hits in the order of fields: the keys of all matches are read column by column, and the first matches are kept.

use std::cmp::Ordering;
use std::sync::{Mutex, PoisonError};

use logpond_engine::query::{ColumnsQuery, Direction, Key, Output, Trailer, cursor_text};
use logpond_host::memory::Charge;
use logpond_record::{Id, Timestamp};
use logpond_search::columns::{ColumnKind, ColumnRequest, Columns};
use logpond_search::{Filter, Number};
use logpond_segment::rows::Column;
use serde_json::{Value as Json, json};

use super::document::Document;
use super::fetch::documents_at;
use super::lists;
use super::sort::{Extreme, SortKey, SortOrder, place_of, span_of};
use super::{json::text_of, scope};
use crate::App;
use crate::error::ApiError;
use crate::logql::run::failed;

/// Matches that are kept beyond those that are wanted, so that they are seldom put in order.
const SPARE: usize = 1024;

/// About the memory of a match without its texts.
const MATCH_BYTES: usize = 128;

/// A value by which matches are ordered: numbers come before texts.
#[derive(Clone, Debug, PartialEq)]
enum SortValue {
    Missing,
    Number(Number),
    Text(Box<[u8]>),
}

impl SortValue {
    fn of(text: &[u8]) -> SortValue {
        match Number::parse(text) {
            Some(number) => SortValue::Number(number),
            None => SortValue::Text(text.into()),
        }
    }

    fn compare(&self, other: &SortValue) -> Ordering {
        match (self, other) {
            (SortValue::Number(a), SortValue::Number(b)) => a.compare(b),
            (SortValue::Text(a), SortValue::Text(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            SortValue::Number(_) => 0,
            SortValue::Text(_) => 1,
            SortValue::Missing => 2,
        }
    }

    fn json(&self) -> Json {
        match self {
            SortValue::Missing => Json::Null,
            SortValue::Number(Number::Int(int)) => (*int).into(),
            SortValue::Number(Number::Float(float)) => (*float).into(),
            SortValue::Number(Number::Decimal(text)) => (&**text).into(),
            SortValue::Text(text) => String::from_utf8_lossy(text).into(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            SortValue::Text(text) => text.len(),
            SortValue::Number(_) | SortValue::Missing => 0,
        }
    }
}

/// The values of a match, one for each key, and its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Match {
    values: Vec<SortValue>,
    /// `None` is behind all places: of a match that is only known by its values.
    place: Option<Key>,
}

impl Match {
    /// The match of `search_after`.
    ///
    /// # Errors
    /// When the values are not those of a hit in this order.
    pub(super) fn of_values(
        order: &SortOrder,
        values: &Json,
        now: Timestamp,
    ) -> Result<Match, ApiError> {
        let mut found = Match {
            values: Vec::new(),
            place: None,
        };
        for (part, value) in order.parts().iter().zip(order.checked(values)?) {
            found.values.push(match &part.key {
                SortKey::Place => {
                    found.place = Some(place_of(value)?);
                    SortValue::Missing
                }
                SortKey::Time(format) => {
                    let span = span_of(format.as_ref(), value, now)?;
                    SortValue::Number(Number::Int(span.from.unix_ms()))
                }
                SortKey::Field(..) => {
                    let text = text_of(value);
                    text.map_or(SortValue::Missing, |text| SortValue::of(text.as_bytes()))
                }
            });
        }
        Ok(found)
    }

    /// The match in the id of a scroll.
    pub(super) fn of_state(order: &SortOrder, state: &Json) -> Option<Match> {
        let place = state.get("place")?;
        let mut found = Match::of_values(order, state.get("values")?, Timestamp::default()).ok()?;
        found.place = Some(place_of(place).ok()?);
        Some(found)
    }

    /// The match for the id of a scroll.
    fn state(&self, order: &SortOrder) -> Json {
        json!({ "values": self.json(order), "place": self.place.map(cursor_text) })
    }

    /// The values of the hit.
    fn json(&self, order: &SortOrder) -> Json {
        let each = order.parts().iter().zip(&self.values);
        let values = each.map(|(part, value)| match (&part.key, self.place, value) {
            (SortKey::Place, place, _) => place.map(cursor_text).into(),
            (SortKey::Time(Some(format)), Some(place), _) => {
                format.write(place.time.0, &jiff::tz::TimeZone::UTC).into()
            }
            (_, _, value) => value.json(),
        });
        values.collect()
    }

    fn bytes(&self) -> usize {
        let texts = self.values.iter().map(SortValue::bytes);
        MATCH_BYTES + texts.sum::<usize>()
    }
}

/// Compares two matches.
fn compare(order: &SortOrder, a: &Match, b: &Match) -> Ordering {
    let by_place = match (a.place, b.place) {
        (Some(a), Some(b)) => a.cmp(&b),
        // That of which only the values are known is behind all with the same.
        (a, b) => a.is_none().cmp(&b.is_none()),
    };
    for (part, (a, b)) in order.parts().iter().zip(a.values.iter().zip(&b.values)) {
        let found = match (&part.key, a, b) {
            (SortKey::Place, ..) => by_place,
            (_, SortValue::Missing, SortValue::Missing) => Ordering::Equal,
            (_, SortValue::Missing, _) | (_, _, SortValue::Missing) => {
                let missing = matches!(a, SortValue::Missing);
                // Its place has nothing to do with the direction.
                let found = if missing == part.missing_is_first {
                    Ordering::Less
                } else {
                    Ordering::Greater
                };
                return found;
            }
            (_, a, b) => a.compare(b),
        };
        let found = match part.direction {
            Direction::Forward => found,
            Direction::Backward => found.reverse(),
        };
        if found.is_ne() {
            return found;
        }
    }
    by_place
}

/// The first hits of an order.
#[derive(Debug)]
pub(super) struct SortedHits {
    pub(super) hits: Vec<Json>,
    /// The last of them, for the id of a scroll.
    pub(super) last: Option<Json>,
    /// The matches of the filter, also those before the page.
    pub(super) records: u64,
    pub(super) trailer: Trailer,
}

/// The window of matches that is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window<'w> {
    pub(super) from: u64,
    pub(super) size: u64,
    /// Only matches behind this one.
    pub(super) after: Option<&'w Match>,
}

struct Kept<'o> {
    order: &'o SortOrder,
    most: usize,
    matches: Vec<Match>,
    /// The last match that is wanted so far, once there are enough.
    bound: Option<Match>,
    charge: Charge,
}

impl Kept<'_> {
    fn add(&mut self, more: Vec<Match>) {
        self.matches.extend(more);
        if self.matches.len() >= self.most + SPARE {
            self.shrink();
        }
        let bytes: usize = self.matches.iter().map(Match::bytes).sum();
        self.charge.set_soon(bytes);
    }

    fn shrink(&mut self) {
        let order = self.order;
        self.matches.sort_unstable_by(|a, b| compare(order, a, b));
        self.matches.truncate(self.most);
        if self.matches.len() == self.most {
            self.bound = self.matches.last().cloned();
        }
    }
}

/// Finds the first matches of a filter in an order, and reads them as hits by `form`.
///
/// # Errors
/// When they cannot be read, or take too much memory.
pub(super) fn hits(
    app: &App,
    filter: &Filter,
    (order, window): (&SortOrder, Window<'_>),
    form: &dyn Fn(&Document) -> Json,
    out: &mut Output,
) -> Result<SortedHits, ApiError> {
    let (query, columns) = columns_of(order, filter)?;
    let most = usize::try_from(window.from + window.size).unwrap_or(usize::MAX);
    let kept = Mutex::new(Kept {
        order,
        most,
        matches: Vec::new(),
        bound: None,
        charge: Charge::new(out.lease()),
    });
    let lock = || kept.lock().unwrap_or_else(PoisonError::into_inner);
    let take = |rows: Columns| {
        let bound = lock().bound.clone();
        let mut found = Vec::new();
        for row in 0..rows.rows {
            let Some(one) = match_of(order, &columns, &rows, row) else {
                continue;
            };
            let is_behind = window
                .after
                .is_none_or(|after| compare(order, &one, after).is_gt());
            let is_before = bound
                .as_ref()
                .is_none_or(|bound| compare(order, &one, bound).is_lt());
            if is_behind && is_before {
                found.push(one);
            }
        }
        let mut kept = lock();
        kept.add(found);
        !kept.charge.is_refused()
    };
    let done = app.engine.columns(&query, &take, out);
    let mut kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    if kept.charge.is_refused() {
        return Err(ApiError::no_memory(&kept.charge));
    }
    let trailer = done.map_err(failed)?;
    kept.shrink();
    let first = usize::try_from(window.from).unwrap_or(usize::MAX);
    let page = kept.matches.get(first..).unwrap_or_default();
    let places: Vec<Key> = page.iter().filter_map(|one| one.place).collect();
    let documents = documents_at(app, &places, out)?;
    let found = page.iter().zip(&documents).map(|(one, document)| {
        let mut hit = form(document);
        hit["sort"] = one.json(order);
        hit
    });
    Ok(SortedHits {
        hits: found.collect(),
        last: page.last().map(|one| one.state(order)),
        records: trailer.rows,
        trailer,
    })
}

/// The column of each key; of a place none.
type KeyColumns = Vec<Option<usize>>;

/// The columns of the time, the id and the keys.
fn columns_of(order: &SortOrder, filter: &Filter) -> Result<(ColumnsQuery, KeyColumns), ApiError> {
    let column = |name: &str, kind| ColumnRequest {
        name: name.into(),
        kind,
    };
    let mut asked = vec![
        column("_time", ColumnKind::Time),
        column("_id", ColumnKind::Text),
    ];
    let columns = order.parts().iter().map(|part| match &part.key {
        SortKey::Place => None,
        SortKey::Time(_) => Some(0),
        SortKey::Field(name, _) => {
            let kind = match &**name {
                "_received" => ColumnKind::Time,
                _ => ColumnKind::Text,
            };
            asked.push(column(name, kind));
            Some(asked.len() - 1)
        }
    });
    let columns = columns.collect();
    let query = ColumnsQuery {
        scope: scope::of_filter(filter)?,
        columns: asked.into(),
        order: None,
        limit: None,
    };
    Ok((query, columns))
}

/// The match of a row.
fn match_of(order: &SortOrder, columns: &KeyColumns, rows: &Columns, row: usize) -> Option<Match> {
    let ms = |column: &Column| match column {
        Column::Ints(times) => times.get(row).map(|ns| Timestamp(ns).unix_ms()),
        _ => None,
    };
    let text = |column| match rows.columns.get(column) {
        Some(Column::Strings(texts)) => texts.get(row),
        _ => None,
    };
    let time = match rows.columns.first()? {
        Column::Ints(times) => Timestamp(times.get(row)?),
        _ => return None,
    };
    let id: Id = std::str::from_utf8(text(1)?).ok()?.parse().ok()?;
    let values = order.parts().iter().zip(columns).map(|(part, column)| {
        let Some(column) = *column else {
            return SortValue::Missing;
        };
        if let Some(ms) = rows.columns.get(column).and_then(ms) {
            return SortValue::Number(Number::Int(ms));
        }
        match part.key {
            SortKey::Field(_, extreme) => value_of(text(column), extreme),
            _ => SortValue::Missing,
        }
    });
    Some(Match {
        values: values.collect(),
        place: Some(Key { time, id }),
    })
}

/// The value of a field that counts.
fn value_of(text: Option<&[u8]>, extreme: Extreme) -> SortValue {
    let mut found: Option<SortValue> = None;
    lists::each_value(text, &mut |value| {
        let value = SortValue::of(value);
        let is_more = |known: &SortValue| match extreme {
            Extreme::Smallest => value.compare(known).is_lt(),
            Extreme::Largest => value.compare(known).is_gt(),
        };
        if found.as_ref().is_none_or(is_more) {
            found = Some(value);
        }
    });
    found.unwrap_or(SortValue::Missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(order: &SortOrder, value: &str, n: u128) -> Match {
        let text = (!value.is_empty()).then_some(value.as_bytes());
        let value = |key: &SortKey| match key {
            SortKey::Field(_, extreme) => value_of(text, *extreme),
            _ => SortValue::Missing,
        };
        Match {
            values: order.parts().iter().map(|part| value(&part.key)).collect(),
            place: Some(Key {
                time: Timestamp(0),
                id: Id(n),
            }),
        }
    }

    #[test]
    fn values_are_in_order() {
        let table = [
            (
                json!([{"a": "asc"}]),
                ["2", "10", "[5,30]", "b", "c", ""],
                "0 2 1 3 4 5",
            ),
            (
                json!([{"a": "desc"}]),
                ["2", "10", "[5,30]", "b", "c", ""],
                "4 3 2 1 0 5",
            ),
            (
                json!([{"a": {"order": "desc", "missing": "_first"}}]),
                ["2", "", "1.5", "", "1", "1.50"],
                "1 3 0 2 5 4",
            ),
            (
                json!([{"a": {"order": "desc", "mode": "min"}}, {"_doc": "desc"}]),
                ["7", "[1,9]", "[8]", "7", "x", "7.0"],
                "4 2 5 3 0 1",
            ),
        ];
        for (given, values, expected) in table {
            let order = SortOrder::read(Some(&given), false).unwrap();
            let each = values.iter().zip(0..);
            let mut all: Vec<Match> = each.map(|(value, n)| one(&order, value, n)).collect();
            all.sort_by(|a, b| compare(&order, a, b));
            let ids = all.iter().map(|one| one.place.unwrap().id.0.to_string());
            assert_eq!(ids.collect::<Vec<_>>().join(" "), expected, "{given}");
            // The next page begins behind each of them.
            for at in 0..all.len() {
                let state = all[at].state(&order);
                let last = Match::of_state(&order, &state).unwrap();
                let behind = all.iter().filter(|one| compare(&order, one, &last).is_gt());
                assert_eq!(behind.count(), all.len() - at - 1, "{given} {state}");
            }
        }
    }

    #[test]
    fn values_alone_are_behind_their_equals() {
        let order = SortOrder::read(Some(&json!("a")), false).unwrap();
        let after = Match::of_values(&order, &json!([7]), Timestamp(0)).unwrap();
        for (value, is_behind) in [
            ("7", false),
            ("7.0", false),
            ("8", true),
            ("x", true),
            ("", true),
        ] {
            let found = compare(&order, &one(&order, value, 1), &after);
            assert_eq!(found.is_gt(), is_behind, "{value}");
        }
        assert!(Match::of_values(&order, &json!([1, 2]), Timestamp(0)).is_err());
    }
}
