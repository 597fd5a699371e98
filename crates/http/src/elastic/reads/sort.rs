//! `sort` and `search_after`: the order of hits is that of their times.

use logpond_engine::query::{Direction, Key, cursor_text, parse_cursor};
use logpond_record::{Id, Timestamp};
use serde_json::Value as Json;

use super::dates::{DateFormat, DateReader, MS_NS};
use super::json::{bad, list, object, only, optional, text_of, unsupported};
use super::names;
use crate::error::ApiError;

/// A key of the order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SortKey {
    /// The time, as a number of milliseconds or in a format.
    Time(Option<DateFormat>),
    /// The place of a record, which tells it from others of the same time.
    Place,
}

/// The order of hits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SortOrder {
    pub(super) direction: Direction,
    keys: Vec<SortKey>,
}

impl SortOrder {
    /// Reads `sort`; without it the newest come first.
    ///
    /// # Errors
    /// When it is another order than that of times.
    pub(super) fn read(given: Option<&Json>, has_pit: bool) -> Result<SortOrder, ApiError> {
        let mut order = SortOrder {
            direction: Direction::Backward,
            keys: Vec::new(),
        };
        let mut directions = Vec::new();
        for (name, options) in keys_of(given)? {
            let (key, direction) = key(name, options)?;
            if key.is_some() || order.keys.is_empty() {
                directions.push((key.is_some(), direction));
            }
            order.keys.push(key.unwrap_or(SortKey::Place));
        }
        if let Some((_, direction)) = directions.first() {
            order.direction = *direction;
        }
        let is_same = |(_, direction): &(bool, Direction)| *direction == order.direction;
        if !directions.iter().all(is_same) {
            return Err(unsupported(
                "sort in two directions",
                "sort all keys in one direction",
            ));
        }
        if has_pit && !order.keys.is_empty() && !order.keys.contains(&SortKey::Place) {
            order.keys.push(SortKey::Place);
        }
        Ok(order)
    }

    /// True if the request names an order.
    pub(super) fn is_given(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The values of a hit, by which the next page is found.
    pub(super) fn values(&self, key: Key) -> Vec<Json> {
        let values = self.keys.iter().map(|sort| match sort {
            SortKey::Time(None) => key.time.unix_ms().into(),
            SortKey::Time(Some(format)) => {
                let text = format.write(key.time.0, &jiff::tz::TimeZone::UTC);
                match text.parse::<i64>() {
                    Ok(number) if format.is_number() => number.into(),
                    _ => text.into(),
                }
            }
            SortKey::Place => cursor_text(key).into(),
        });
        values.collect()
    }

    /// The place behind which a page begins.
    ///
    /// # Errors
    /// When the values are not those of a hit in this order.
    pub(super) fn behind(&self, values: &Json, now: Timestamp) -> Result<Key, ApiError> {
        let values = list(values);
        if values.len() != self.keys.len() || values.is_empty() {
            return Err(bad(format!(
                "[search_after] has {} value(s) but [sort] has {}",
                values.len(),
                self.keys.len()
            )));
        }
        let mut each = self.keys.iter().zip(values);
        if let Some((_, place)) = each.find(|(key, _)| **key == SortKey::Place) {
            let key = place.as_str().and_then(|text| parse_cursor(text).ok());
            return key.ok_or_else(|| {
                bad(format!(
                    "[search_after] needs the [sort] of a hit, and {place} is not of one"
                ))
            });
        }
        let mut reader = DateReader::new(now);
        match (self.keys.first(), values.first()) {
            (Some(SortKey::Time(Some(format))), _) => reader.formats = vec![format.clone()],
            // A number of four digits is no year here.
            (_, Some(Json::Number(_))) => reader.formats = vec![DateFormat::milliseconds()],
            _ => {}
        }
        let text = values.first().and_then(text_of);
        let text = text.ok_or_else(|| bad("[search_after] needs the [sort] of a hit"))?;
        let span = reader.span(&text)?;
        Ok(match self.direction {
            Direction::Forward => Key {
                time: span.to.saturating_add(-1),
                id: Id::MAX,
            },
            Direction::Backward => Key {
                time: span.from,
                id: Id::MIN,
            },
        })
    }
}

/// The keys with their options: names, and objects of one or several of them. Several in one object are in the order of
/// their names, so that `@timestamp` is before `_doc`.
fn keys_of(given: Option<&Json>) -> Result<Vec<(&str, Option<&Json>)>, ApiError> {
    let mut keys: Vec<(&str, Option<&Json>)> = Vec::new();
    for one in given.map_or(&[][..], list) {
        match one {
            Json::Null => {}
            Json::String(name) => keys.push((name, None)),
            one => {
                let members = object(one, "sort")?.iter();
                keys.extend(members.map(|(name, options)| (name.as_str(), Some(options))));
            }
        }
    }
    Ok(keys)
}

/// A key with its direction; `None` is the place of the record.
fn key(name: &str, options: Option<&Json>) -> Result<(Option<SortKey>, Direction), ApiError> {
    let (mut order, mut format) = (None, None);
    match options {
        None => {}
        Some(Json::String(text)) => order = Some(text.clone()),
        Some(options) => {
            let members = object(options, name)?;
            let known = [
                "order",
                "format",
                "unmapped_type",
                "missing",
                "mode",
                "numeric_type",
            ];
            only(members, &known, "sort")?;
            order = optional(members, "order")?;
            let nanoseconds = optional(members, "numeric_type")?;
            format = optional(members, "format")?
                .as_deref()
                .map(DateFormat::of)
                .transpose()?;
            if nanoseconds.as_deref() == Some("date_nanos") && format.is_none() {
                format = Some(DateFormat::of("strict_date_optional_time_nanos")?);
            }
        }
    }
    let direction = match order.as_deref().map(str::to_ascii_lowercase).as_deref() {
        None | Some("asc") => Direction::Forward,
        Some("desc") => Direction::Backward,
        Some(other) => return Err(bad(format!("[order] is asc or desc, not [{other}]"))),
    };
    match name {
        "_doc" | "_shard_doc" | names::ID => Ok((None, direction)),
        "_score" => Err(unsupported(
            "sort by _score",
            "there are no scores; sort by @timestamp",
        )),
        name if names::of_record(name) == "_time" => Ok((Some(SortKey::Time(format)), direction)),
        name => Err(unsupported(
            &format!("sort by {name}"),
            "sort by @timestamp or _doc, or use a terms aggregation with an order",
        )),
    }
}

/// A millisecond is the precision of times in `sort`.
const _: () = assert!(MS_NS == 1_000_000);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hit() -> Key {
        Key {
            time: Timestamp(1_795_255_200_123_456_789),
            id: Id(7),
        }
    }

    #[test]
    fn orders_have_directions_and_values() {
        let place = cursor_text(hit());
        let table = [
            (json!(null), false, Direction::Backward, json!([])),
            (json!("_doc"), false, Direction::Forward, json!([place])),
            (
                json!("@timestamp"),
                false,
                Direction::Forward,
                json!([1_795_255_200_123_i64]),
            ),
            (
                json!([{"@timestamp": "desc"}]),
                false,
                Direction::Backward,
                json!([1_795_255_200_123_i64]),
            ),
            (
                json!([{"@timestamp": {"order": "desc", "unmapped_type": "boolean"}}, {"_doc": {"order": "asc"}}]),
                false,
                Direction::Backward,
                json!([1_795_255_200_123_i64, place]),
            ),
            (
                json!({"_doc": {"order": "desc"}, "@timestamp": {"order": "desc", "unmapped_type": "boolean"}}),
                false,
                Direction::Backward,
                json!([1_795_255_200_123_i64, place]),
            ),
            (
                json!([{"@timestamp": {"order": "asc", "format": "strict_date_optional_time_nanos"}}]),
                true,
                Direction::Forward,
                json!(["2026-11-21T10:00:00.123456789Z", place]),
            ),
        ];
        for (given, has_pit, direction, values) in table {
            let order = SortOrder::read(Some(&given), has_pit).unwrap();
            assert_eq!(order.direction, direction, "{given}");
            assert_eq!(Json::from(order.values(hit())), values, "{given}");
            if order.keys.contains(&SortKey::Place) {
                assert_eq!(
                    order.behind(&values, Timestamp(0)).unwrap(),
                    hit(),
                    "{given}"
                );
            }
        }
    }

    #[test]
    fn pages_begin_behind_a_millisecond() {
        let order = |direction: &str| {
            SortOrder::read(Some(&json!([{"@timestamp": direction}])), false).unwrap()
        };
        let values = json!([1000]);
        let behind = order("asc").behind(&values, Timestamp(0)).unwrap();
        assert_eq!(
            behind,
            Key {
                time: Timestamp(1_000_999_999),
                id: Id::MAX
            }
        );
        let behind = order("desc").behind(&values, Timestamp(0)).unwrap();
        assert_eq!(
            behind,
            Key {
                time: Timestamp(1_000_000_000),
                id: Id::MIN
            }
        );
        assert!(order("asc").behind(&json!([1, 2]), Timestamp(0)).is_err());
        assert!(order("asc").behind(&json!(["x"]), Timestamp(0)).is_err());
    }

    #[test]
    fn other_orders_are_refused() {
        for given in [
            json!("status"),
            json!("_score"),
            json!([{"@timestamp": "up"}]),
            json!([{"@timestamp": "asc"}, {"@timestamp": "desc"}]),
            json!([{"@timestamp": {"nested": {}}}]),
        ] {
            assert!(SortOrder::read(Some(&given), false).is_err(), "{given}");
        }
    }
}
