//! `buckets_path`: the way from a bucket to a value in it.
//!
//! ```text
//! path  = step *( ">" step ) ; a single bucket, or one of several by its key
//! step  = name [ "['" key "']" ] [ "." value ] / "_count" / "_key" / "_bucket_count"
//! ```

use logpond_record::cast;
use serde_json::Value as Json;

use super::super::super::json::{Object, bad, optional};
use crate::error::ApiError;

/// The most steps of a path.
const STEPS_MAX: usize = 20;

/// A path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    text: String,
    /// Invariant: at least one.
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    name: String,
    /// The text within brackets: the key of a bucket, or the name of a value.
    key: Option<String>,
}

/// The value of a bucket that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// There is none.
    Skip,
    /// It is 0.
    Zeros,
    /// There is none, but buckets without records have the values of their metrics.
    Keep,
}

impl Gap {
    /// Reads `gap_policy`.
    ///
    /// # Errors
    /// When there is no such one.
    pub(super) fn read(members: &Object, default: Gap) -> Result<Gap, ApiError> {
        match optional(members, "gap_policy")?
            .map(|text| text.to_ascii_lowercase())
            .as_deref()
        {
            None => Ok(default),
            Some("skip") => Ok(Gap::Skip),
            Some("insert_zeros") => Ok(Gap::Zeros),
            Some("keep_values") => Ok(Gap::Keep),
            Some(other) => Err(bad(format!(
                "[gap_policy] is skip, insert_zeros or keep_values, not [{other}]"
            ))),
        }
    }
}

/// The part of a path behind its first step.
pub(super) struct Within<'p> {
    text: &'p str,
    steps: &'p [Step],
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn read(text: &str) -> Result<Path, ApiError> {
        let steps: Vec<Step> = text.split('>').map(step).collect();
        if steps.len() > STEPS_MAX {
            return Err(bad(format!("[buckets_path] has at most {STEPS_MAX} steps")));
        }
        if steps.iter().any(|step| step.name.is_empty()) {
            return Err(bad(format!("[buckets_path] [{text}] lacks a name")));
        }
        Ok(Path {
            text: text.to_owned(),
            steps,
        })
    }

    /// As it was given.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// True if it begins with a name of these: names may have dots, behind which there may be a value.
    pub(super) fn begins(&self, is_name: impl Fn(&str) -> bool) -> bool {
        let first = self.steps.first().map_or("", |step| &*step.name);
        let dots = first.match_indices('.').map(|(at, _)| at);
        is_name(first) || dots.into_iter().any(|at| is_name(&first[..at]))
    }

    /// True if it names a value that each bucket has.
    pub(super) fn is_own(&self) -> bool {
        self.is_single()
            && self
                .steps
                .first()
                .is_some_and(|step| ["_count", "_key"].contains(&&*step.name))
    }

    /// True if it has one step.
    pub(super) fn is_single(&self) -> bool {
        self.steps.len() == 1
    }

    /// The first name, and the way behind it.
    pub(super) fn split(&self) -> (&str, Within<'_>) {
        let first = self.steps.first().map_or("", |step| &*step.name);
        let within = Within {
            text: &self.text,
            steps: self.steps.get(1..).unwrap_or_default(),
        };
        (first, within)
    }

    /// The value in a bucket.
    ///
    /// # Errors
    /// When there is something that is no number.
    pub(super) fn value(&self, bucket: &Json, gap: Gap) -> Result<Option<f64>, ApiError> {
        let all = Within {
            text: &self.text,
            steps: &self.steps,
        };
        all.value(bucket, gap)
    }
}

impl Within<'_> {
    /// The value in a bucket.
    ///
    /// # Errors
    /// When there is something that is no number.
    pub(super) fn value(&self, bucket: &Json, gap: Gap) -> Result<Option<f64>, ApiError> {
        let is_count = matches!(self.steps, [one] if one.name == "_count");
        let found = self.found(bucket)?.filter(|value| value.is_finite());
        let is_empty = bucket["doc_count"] == 0 && !is_count;
        Ok(match (gap, found) {
            (Gap::Zeros, None) => Some(0.0),
            (Gap::Zeros, Some(_)) if is_empty => Some(0.0),
            (Gap::Skip, _) if is_empty => None,
            (_, found) => found,
        })
    }

    fn found(&self, bucket: &Json) -> Result<Option<f64>, ApiError> {
        let mut at = bucket;
        let Some((last, before)) = self.steps.split_last() else {
            return Err(self.no_number());
        };
        for step in before {
            let Some(next) = child(at, &step.name) else {
                return Ok(None);
            };
            at = match &step.key {
                None => next,
                Some(key) => match one_bucket(next, key) {
                    Some(bucket) => bucket,
                    None => return Ok(None),
                },
            };
        }
        match (&*last.name, &last.key) {
            ("_count", _) => return Ok(at["doc_count"].as_f64()),
            ("_key", _) => return Ok(at["key"].as_f64()),
            ("_bucket_count", _) => return Ok(bucket_count(at)),
            _ => {}
        }
        let name = &*last.name;
        if let Some(answer) = child(at, name) {
            return match &last.key {
                Some(key) => self.named(answer, key),
                None => self.named(answer, "value"),
            };
        }
        for (dot, _) in name.match_indices('.') {
            let (name, value) = (&name[..dot], &name[dot + 1..]);
            if let Some(answer) = child(at, name) {
                return match value {
                    "_bucket_count" => Ok(bucket_count(answer)),
                    "_count" => Ok(answer["doc_count"].as_f64()),
                    value => self.named(answer, value),
                };
            }
        }
        Ok(None)
    }

    /// The value of a name in the answer of a metric.
    fn named(&self, answer: &Json, name: &str) -> Result<Option<f64>, ApiError> {
        let bounds = &answer["std_deviation_bounds"];
        let short = name.strip_prefix("std_").unwrap_or_default();
        let first = &answer["top"][0]["metrics"];
        let percent = name.parse::<f64>().ok().map(|at| format!("{at:?}"));
        let places = [
            answer.get(name),
            bounds.get(short),
            name.split_once('.')
                .and_then(|(outer, inner)| answer.get(outer)?.get(inner)),
            first.get(name),
            percent.and_then(|percent| answer["values"].get(percent)),
        ];
        match places.into_iter().flatten().next() {
            Some(Json::Number(number)) => Ok(number.as_f64()),
            Some(Json::Null) => Ok(None),
            // A bucket without records has no first one.
            None if answer["top"].as_array().is_some_and(Vec::is_empty) => Ok(None),
            _ => Err(self.no_number()),
        }
    }

    fn no_number(&self) -> ApiError {
        bad(format!(
            "[buckets_path] must reference either a number value or a single value numeric metric aggregation, and \
             [{}] does not",
            self.text
        ))
    }
}

fn step(text: &str) -> Step {
    let bracketed = text.strip_suffix(']').and_then(|text| text.split_once('['));
    let (name, key) = match bracketed {
        Some((name, key)) => (name, Some(key)),
        None => (text, None),
    };
    let unquoted = key.map(|key| {
        let quoted = key
            .strip_prefix('\'')
            .and_then(|key| key.strip_suffix('\''));
        quoted.unwrap_or(key).to_owned()
    });
    Step {
        name: name.trim().to_owned(),
        key: unquoted,
    }
}

/// The answer of a name, which may have its kind before it.
pub(super) fn member<'j>(answers: &'j Object, name: &str) -> Option<&'j Json> {
    let typed = |key: &str| key.split_once('#').is_some_and(|(_, rest)| rest == name);
    let found = answers.get(name);
    found.or_else(|| {
        answers
            .iter()
            .find(|(key, _)| typed(key))
            .map(|(_, json)| json)
    })
}

fn child<'j>(bucket: &'j Json, name: &str) -> Option<&'j Json> {
    member(bucket.as_object()?, name)
}

fn one_bucket<'j>(answer: &'j Json, key: &str) -> Option<&'j Json> {
    match answer.get("buckets")? {
        Json::Object(named) => named.get(key),
        list => {
            let mut each = list.as_array()?.iter();
            each.find(|bucket| key_text(bucket) == key)
        }
    }
}

fn bucket_count(answer: &Json) -> Option<f64> {
    let count = match answer.get("buckets")? {
        Json::Object(named) => named.len(),
        list => list.as_array()?.len(),
    };
    Some(cast::float(count))
}

/// The key of a bucket as text.
pub(super) fn key_text(bucket: &Json) -> String {
    let text = bucket.get("key_as_string").or_else(|| bucket.get("key"));
    match text {
        Some(Json::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}
