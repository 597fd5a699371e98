//! `sort` and `search_after`: the keys of the order of hits.

use logpond_engine::query::{Direction, Key, cursor_text, parse_cursor};
use logpond_record::{Id, TimeRange, Timestamp};
use serde_json::Value as Json;

use super::dates::{DateFormat, DateReader, MS_NS};
use super::json::{bad, list, object, only, optional, text_of, unsupported};
use super::names;
use crate::error::ApiError;

/// A key of the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SortKey {
    /// The time, as a number of milliseconds or in a format.
    Time(Option<DateFormat>),
    /// The place of a record, which tells it from others of the same time.
    Place,
    /// A field of records, by its name there; of several values this one counts.
    Field(Box<str>, Extreme),
}

/// One of several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extreme {
    Smallest,
    Largest,
}

/// A key with its direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SortPart {
    pub(super) key: SortKey,
    pub(super) direction: Direction,
    /// True if hits without a value are first, whatever the direction is.
    pub(super) missing_is_first: bool,
}

/// The most keys of an order.
const KEYS_MAX: usize = 16;

/// The order of hits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SortOrder {
    /// The direction of the first key.
    pub(super) direction: Direction,
    keys: Vec<SortPart>,
}

impl SortOrder {
    /// Reads `sort`; without it the newest come first.
    ///
    /// # Errors
    /// When it is no order.
    pub(super) fn read(given: Option<&Json>, has_pit: bool) -> Result<SortOrder, ApiError> {
        let mut keys = Vec::new();
        for (name, options) in keys_of(given)? {
            keys.push(part(name, options)?);
        }
        if keys.len() > KEYS_MAX {
            return Err(bad(format!("[sort] has at most {KEYS_MAX} keys")));
        }
        let first = keys.first().map(|part: &SortPart| part.direction);
        let direction = first.unwrap_or(Direction::Backward);
        let has_place = keys.iter().any(|part| part.key == SortKey::Place);
        if has_pit && !keys.is_empty() && !has_place {
            keys.push(SortPart {
                key: SortKey::Place,
                direction,
                missing_is_first: false,
            });
        }
        Ok(SortOrder { direction, keys })
    }

    /// Reads `sort` of hits that are in the order of their times.
    ///
    /// # Errors
    /// When it is another order.
    pub(super) fn read_times(given: Option<&Json>) -> Result<SortOrder, ApiError> {
        let order = SortOrder::read(given, false)?;
        if order.is_of_times() {
            return Ok(order);
        }
        Err(unsupported(
            "sort of top_hits by other fields",
            "sort by @timestamp or _doc in one direction",
        ))
    }

    /// True if the request names an order.
    pub(super) fn is_given(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The keys.
    pub(super) fn parts(&self) -> &[SortPart] {
        &self.keys
    }

    /// True if hits are in the order of their times, forward or backward, as the engine gives them. A place behind a time
    /// only tells records of one time apart.
    pub(super) fn is_of_times(&self) -> bool {
        self.keys.iter().all(|part| match part.key {
            SortKey::Time(_) => part.direction == self.direction,
            SortKey::Place => true,
            SortKey::Field(..) => false,
        })
    }

    /// The values of a hit, by which the next page is found; of fields they are not known here.
    pub(super) fn values(&self, key: Key) -> Vec<Json> {
        let values = self.keys.iter().map(|part| match &part.key {
            SortKey::Time(None) => key.time.unix_ms().into(),
            SortKey::Time(Some(format)) => {
                let text = format.write(key.time.0, &jiff::tz::TimeZone::UTC);
                match text.parse::<i64>() {
                    Ok(number) if format.is_number() => number.into(),
                    _ => text.into(),
                }
            }
            SortKey::Place => cursor_text(key).into(),
            SortKey::Field(..) => Json::Null,
        });
        values.collect()
    }

    /// The place behind which a page begins.
    ///
    /// # Errors
    /// When the values are not those of a hit in this order.
    pub(super) fn behind(&self, values: &Json, now: Timestamp) -> Result<Key, ApiError> {
        let values = self.checked(values)?;
        let mut each = self.keys.iter().zip(values);
        if let Some((_, place)) = each.find(|(part, _)| part.key == SortKey::Place) {
            return place_of(place);
        }
        let span = match (self.keys.first().map(|part| &part.key), values.first()) {
            (Some(SortKey::Time(format)), Some(value)) => span_of(format.as_ref(), value, now)?,
            _ => return Err(bad("[search_after] needs the [sort] of a hit")),
        };
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

    /// The values of `search_after`, of which each key has one.
    ///
    /// # Errors
    /// When there are more, or fewer.
    pub(super) fn checked<'j>(&self, values: &'j Json) -> Result<&'j [Json], ApiError> {
        let values = list(values);
        if values.len() != self.keys.len() || values.is_empty() {
            return Err(bad(format!(
                "[search_after] has {} value(s) but [sort] has {}",
                values.len(),
                self.keys.len()
            )));
        }
        Ok(values)
    }
}

/// The place that a value of a hit names.
///
/// # Errors
/// When it names none.
pub(super) fn place_of(value: &Json) -> Result<Key, ApiError> {
    let key = value.as_str().and_then(|text| parse_cursor(text).ok());
    key.ok_or_else(|| {
        bad(format!(
            "[search_after] needs the [sort] of a hit, and {value} is not of one"
        ))
    })
}

/// The span that a value of a hit names, in the format of its key.
///
/// # Errors
/// When it names none.
pub(super) fn span_of(
    format: Option<&DateFormat>,
    value: &Json,
    now: Timestamp,
) -> Result<TimeRange, ApiError> {
    let mut reader = DateReader::new(now);
    match (format, value) {
        (Some(format), _) => reader.formats = vec![format.clone()],
        // A number of four digits is no year here.
        (None, Json::Number(_)) => reader.formats = vec![DateFormat::milliseconds()],
        _ => {}
    }
    let text = text_of(value).ok_or_else(|| bad("[search_after] needs the [sort] of a hit"))?;
    reader.span(&text)
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

/// The options of a key.
#[derive(Default)]
struct KeyOptions {
    order: Option<String>,
    format: Option<DateFormat>,
    missing: Option<String>,
    mode: Option<String>,
}

impl KeyOptions {
    fn read(name: &str, given: Option<&Json>) -> Result<KeyOptions, ApiError> {
        let members = match given {
            None => return Ok(KeyOptions::default()),
            Some(Json::String(text)) => {
                return Ok(KeyOptions {
                    order: Some(text.clone()),
                    ..KeyOptions::default()
                });
            }
            Some(given) => object(given, name)?,
        };
        let known = [
            "order",
            "format",
            "unmapped_type",
            "missing",
            "mode",
            "numeric_type",
        ];
        only(members, &known, "sort")?;
        let nanoseconds = optional(members, "numeric_type")?;
        let mut format = optional(members, "format")?
            .as_deref()
            .map(DateFormat::of)
            .transpose()?;
        if nanoseconds.as_deref() == Some("date_nanos") && format.is_none() {
            format = Some(DateFormat::of("strict_date_optional_time_nanos")?);
        }
        Ok(KeyOptions {
            order: optional(members, "order")?,
            format,
            missing: optional(members, "missing")?,
            mode: optional(members, "mode")?,
        })
    }
}

/// A key with its direction.
fn part(name: &str, given: Option<&Json>) -> Result<SortPart, ApiError> {
    let options = KeyOptions::read(name, given)?;
    let order = options.order.as_deref().map(str::to_ascii_lowercase);
    let direction = match order.as_deref() {
        None | Some("asc") => Direction::Forward,
        Some("desc") => Direction::Backward,
        Some(other) => return Err(bad(format!("[order] is asc or desc, not [{other}]"))),
    };
    let missing_is_first = match options.missing.as_deref() {
        None | Some("_last") => false,
        Some("_first") => true,
        Some(_) => {
            return Err(unsupported(
                "missing with a value in sort",
                "use _first or _last",
            ));
        }
    };
    let key = match name {
        "_doc" | "_shard_doc" | names::ID => SortKey::Place,
        "_score" => {
            let instead = "there are no scores; sort by @timestamp";
            return Err(unsupported("sort by _score", instead));
        }
        name if names::of_record(name) == "_time" => SortKey::Time(options.format),
        name => {
            let extreme = match (options.mode.as_deref(), direction) {
                (None, Direction::Forward) | (Some("min"), _) => Extreme::Smallest,
                (None, Direction::Backward) | (Some("max"), _) => Extreme::Largest,
                (Some(mode), _) => {
                    let what = format!("mode {mode} in sort");
                    return Err(unsupported(&what, "use min or max"));
                }
            };
            SortKey::Field(names::of_record(name).into(), extreme)
        }
    };
    Ok(SortPart {
        key,
        direction,
        missing_is_first,
    })
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
            if order.keys.iter().any(|part| part.key == SortKey::Place) {
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
            json!("_score"),
            json!([{"@timestamp": "up"}]),
            json!([{"status": {"missing": 0}}]),
            json!([{"status": {"mode": "avg"}}]),
            Json::from(vec!["a"; KEYS_MAX + 1]),
            json!([{"@timestamp": {"nested": {}}}]),
        ] {
            assert!(SortOrder::read(Some(&given), false).is_err(), "{given}");
        }
    }
}
