//! `composite`: a bucket for each combination of values, in pages.
//!
//! Only the buckets of a page are kept, so that the number of all does not matter.

use std::sync::Arc;

use jiff::tz::TimeZone;
use logpond_record::cast;
use serde_json::{Value as Json, json};

use super::super::dates::interval::Interval;
use super::super::dates::{DateReader, MS_NS};
use super::super::json::{
    Object, bad, count, flag, list, object, only, optional, single, text_of, unsupported,
};
use super::columns::{Field, RowView};
use super::date_histogram::TimeSteps;
use super::histogram;
use super::keys::{Key, KeyKind};
use super::order::is_descending;
use super::pipeline::{NamedBuckets, listed};
use super::state::{BucketMap, Finish};
use super::tuples::{self, Part, Place};
use super::{BUCKETS_MAX, Buckets, Kind, Reader, Tree, bucket_json};
use crate::error::ApiError;

/// The most values of a key.
const SOURCES_MAX: usize = 16;

/// Buckets of a page where a request says no number.
const SIZE_DEFAULT: u64 = 10;

/// Members that all kinds of sources have.
const SOURCE_MEMBERS: [&str; 4] = ["order", "missing_bucket", "missing_order", "value_type"];

#[derive(Clone, Debug)]
struct Composite {
    sources: Vec<Source>,
    /// Of each source.
    directions: Vec<bool>,
    size: usize,
    /// The key behind which the page begins.
    after: Option<Box<[u8]>>,
}

#[derive(Clone, Debug)]
struct Source {
    name: String,
    values: Values,
    /// The place of records without a value, if they are counted.
    missing: Option<Place>,
}

/// The values that a source makes of a record.
#[derive(Clone, Debug)]
enum Values {
    Terms(Field),
    Steps(Field, f64),
    Times(Box<TimeSteps>, DateReader),
}

/// Reads the aggregation.
pub(super) fn read(members: &Object, reader: &mut Reader<'_>) -> Result<Kind, ApiError> {
    only(members, &["sources", "size", "after"], "composite")?;
    let given = members.get("sources").map_or(&[][..], list);
    if given.is_empty() || given.len() > SOURCES_MAX {
        return Err(bad(format!(
            "[sources] of [composite] has from 1 to {SOURCES_MAX} sources"
        )));
    }
    let (mut sources, mut directions) = (Vec::<Source>::new(), Vec::new());
    for one in given {
        let (name, source) = single(one, "sources")?;
        if sources.iter().any(|known| known.name == name) {
            return Err(bad(format!("[sources] has [{name}] twice")));
        }
        let (source, is_descending) = Source::read(name, source, reader)?;
        sources.push(source);
        directions.push(is_descending);
    }
    let size = count(members, "size", SIZE_DEFAULT)?;
    if size == 0 || size > BUCKETS_MAX {
        return Err(bad(format!(
            "[size] of [composite] is from 1 to {BUCKETS_MAX}"
        )));
    }
    let after = match members.get("after") {
        None | Some(Json::Null) => None,
        Some(after) => Some(key_of(&sources, &directions, object(after, "after")?)?),
    };
    Ok(Kind::Buckets(Arc::new(Composite {
        sources,
        directions,
        size: usize::try_from(size).unwrap_or(usize::MAX),
        after,
    })))
}

/// The bytes of a key as answers have it.
fn key_of(sources: &[Source], directions: &[bool], given: &Object) -> Result<Box<[u8]>, ApiError> {
    let names: Vec<&str> = sources.iter().map(|source| &*source.name).collect();
    only(given, &names, "after")?;
    let mut tuple = Vec::new();
    for (source, is_descending) in sources.iter().zip(directions) {
        let value = given.get(&source.name);
        let value = value.ok_or_else(|| bad(format!("[after] lacks [{}]", source.name)))?;
        tuples::push(&mut tuple, &source.part(value)?, *is_descending);
    }
    Ok(tuple.into())
}

impl Source {
    /// Reads a source, with whether its values descend.
    fn read(name: &str, given: &Json, reader: &mut Reader<'_>) -> Result<(Source, bool), ApiError> {
        let (kind, options) = single(given, name)?;
        let members = object(options, kind)?;
        let check = |known: &[&str]| only(members, &[known, &SOURCE_MEMBERS[..]].concat(), kind);
        let values = match kind {
            "terms" => {
                check(&["field"])?;
                Values::Terms(reader.columns.field(members, kind)?)
            }
            "histogram" => {
                check(&["field", "interval"])?;
                let interval = histogram::interval(members)?;
                Values::Steps(reader.columns.number_field(members, kind)?, interval)
            }
            "date_histogram" => {
                check(&TimeSteps::MEMBERS)?;
                let (steps, dates) = TimeSteps::read(members, reader)?;
                Values::Times(Box::new(steps), dates)
            }
            other => {
                return Err(unsupported(
                    &format!("{other} in sources"),
                    "use terms, histogram or date_histogram",
                ));
            }
        };
        let place = match optional(members, "missing_order")?.as_deref() {
            None | Some("default") => Place::Default,
            Some("first") => Place::First,
            Some("last") => Place::Last,
            Some(other) => {
                return Err(bad(format!(
                    "[missing_order] is first, last or default, not [{other}]"
                )));
            }
        };
        let order = optional(members, "order")?;
        let is_descending = order.map_or(Ok(false), |order| is_descending(&order, "order"))?;
        let source = Source {
            name: name.to_owned(),
            values,
            missing: flag(members, "missing_bucket", false)?.then_some(place),
        };
        Ok((source, is_descending))
    }

    /// The values of a record.
    fn parts(&self, row: &RowView<'_>) -> Vec<Part> {
        let mut parts = Vec::new();
        match &self.values {
            Values::Terms(field) => parts = tuples::parts_of(row, *field, None),
            Values::Steps(field, interval) => {
                row.each_number(*field, None, &mut |number| {
                    // Beyond whole numbers of 64 bits all are in the last bucket.
                    parts.push(Part::Whole(cast::whole_i64((number / interval).floor())));
                });
            }
            Values::Times(steps, _) => {
                let ms = row.time_ms(steps.field);
                parts.extend(ms.map(|ms| Part::Whole(steps.start(ms))));
            }
        }
        parts.sort();
        parts.dedup();
        if parts.is_empty() {
            parts.extend(self.missing.map(Part::None));
        }
        parts
    }

    /// The value of a key as answers have it.
    fn part(&self, value: &Json) -> Result<Part, ApiError> {
        let wrong = || bad(format!("[after] has a wrong value for [{}]", self.name));
        if value.is_null() {
            return Ok(Part::None(self.missing.ok_or_else(wrong)?));
        }
        let text = text_of(value).ok_or_else(wrong)?;
        Ok(match &self.values {
            Values::Terms(field) if field.is_time => {
                Part::Whole(text.parse().map_err(|_| wrong())?)
            }
            Values::Terms(_) => Part::Text(text.into_bytes().into()),
            Values::Steps(_, interval) => {
                let number: f64 = text.parse().map_err(|_| wrong())?;
                Part::Whole(cast::whole_i64((number / interval).round()))
            }
            Values::Times(steps, dates) => match text.parse() {
                Ok(ms) if steps.format.is_none() => Part::Whole(ms),
                _ => Part::Whole(dates.span(&text)?.from.0.div_euclid(MS_NS)),
            },
        })
    }

    /// A value as an answer has it.
    fn json(&self, text: Option<&[u8]>, kind: KeyKind) -> Json {
        let Some(text) = text else {
            return Json::Null;
        };
        let whole = || {
            String::from_utf8_lossy(text)
                .parse::<i64>()
                .unwrap_or_default()
        };
        match &self.values {
            Values::Terms(_) => kind.json(text),
            Values::Steps(_, interval) => (cast::float(whole()) * interval).into(),
            Values::Times(steps, _) if steps.format.is_none() => whole().into(),
            Values::Times(steps, _) => steps.text(whole()).into(),
        }
    }
}

impl Buckets for Composite {
    fn typed(&self, _: &BucketMap) -> &'static str {
        "composite"
    }

    fn interval(&self) -> Option<(Interval, TimeZone)> {
        self.sources.iter().find_map(|source| match &source.values {
            Values::Times(steps, _) => Some((steps.interval, steps.zone.clone())),
            _ => None,
        })
    }

    fn kept_max(&self) -> Option<usize> {
        Some(self.size)
    }

    fn assign(&self, row: &RowView<'_>, put: &mut dyn FnMut(Key<'_>)) {
        let lists: Vec<Vec<Part>> = self
            .sources
            .iter()
            .map(|source| source.parts(row))
            .collect();
        tuples::each_combination(&lists, &self.directions, &mut |tuple| match tuple {
            None => put(Key::TooMany),
            Some(tuple) if self.after.as_deref().is_none_or(|after| tuple > after) => {
                put(Key::Tuple(tuple));
            }
            Some(_) => {}
        });
    }

    fn finish(
        &self,
        found: BucketMap,
        children: &Tree,
        finish: &mut Finish<'_>,
    ) -> Result<Json, ApiError> {
        let decoded = found.tuples.into_iter();
        let decoded =
            decoded.map(|(tuple, bucket)| (tuples::texts(&tuple, &self.directions), bucket));
        let decoded: Vec<_> = decoded.collect();
        let kinds = (0..self.sources.len()).map(|at| {
            KeyKind::of(
                decoded
                    .iter()
                    .filter_map(|(texts, _)| texts.get(at)?.as_deref()),
            )
        });
        let kinds: Vec<KeyKind> = kinds.collect();
        let mut sources = self.sources.iter();
        let time_at = sources.position(|source| matches!(source.values, Values::Times(..)));
        let around = finish.start_ms;
        let mut buckets = NamedBuckets::new();
        for (texts, bucket) in decoded {
            let start = time_at.and_then(|at| texts.get(at)?.as_deref());
            finish.start_ms = start
                .and_then(|text| std::str::from_utf8(text).ok()?.parse().ok())
                .or(around);
            let each = self.sources.iter().zip(&texts).zip(&kinds);
            let key = each.map(|((source, text), kind)| {
                (source.name.clone(), source.json(text.as_deref(), *kind))
            });
            let own = json!({ "key": Json::Object(key.collect()) });
            buckets.push((String::new(), bucket_json(own, bucket, children, finish)?));
        }
        finish.start_ms = around;
        let mut answer = json!({});
        if let Some((_, last)) = buckets.last() {
            answer["after_key"] = last["key"].clone();
        }
        answer["buckets"] = listed(buckets, false, &children.pipelines, finish)?;
        Ok(answer)
    }
}
