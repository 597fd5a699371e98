//! `filter_path`: the members of an answer that a client wants, as `hits.hits._source.message` or `-took`.
//!
//! Names are divided by dots. `*` stands for any part of a name, `**` for any number of levels. Lists are looked
//! through. A path with `-` in front leaves members out, of those that the others want.

use serde_json::Value as Json;

use super::json::{Object, bad};
use super::names::fits;
use crate::error::ApiError;

/// The most paths.
const PATHS_MAX: usize = 256;

/// The most names of a path.
const NAMES_MAX: usize = 32;

/// The paths of a request.
#[derive(Debug, Default)]
pub(super) struct FilterPath {
    wanted: Vec<Vec<String>>,
    left_out: Vec<Vec<String>>,
}

impl FilterPath {
    /// Reads paths that are divided by commas.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn read(given: &str) -> Result<FilterPath, ApiError> {
        let mut paths = FilterPath::default();
        let given = given.split(',').map(str::trim);
        for path in given.filter(|path| !path.is_empty()) {
            let (list, path) = match path.strip_prefix('-') {
                Some(path) => (&mut paths.left_out, path),
                None => (&mut paths.wanted, path),
            };
            let names: Vec<String> = path.split('.').map(str::to_owned).collect();
            if names.len() > NAMES_MAX || list.len() == PATHS_MAX {
                return Err(bad(format!(
                    "[filter_path] has at most {PATHS_MAX} paths of {NAMES_MAX} names"
                )));
            }
            list.push(names);
        }
        Ok(paths)
    }

    /// The members of an answer that are wanted; an empty object if there are none.
    pub(super) fn of(&self, mut answer: Json) -> Json {
        if !self.left_out.is_empty() {
            leave_out(&mut answer, &all(&self.left_out));
        }
        if self.wanted.is_empty() {
            return answer;
        }
        select(answer, &all(&self.wanted)).unwrap_or_else(|| Json::Object(Object::new()))
    }
}

fn all(paths: &[Vec<String>]) -> Vec<&[String]> {
    paths.iter().map(Vec::as_slice).collect()
}

/// The rests of the paths that lead through a name, each once; an empty one leads to it. Without that they would multiply
/// at each level where a path has several `**`.
fn behind<'p>(paths: &[&'p [String]], name: &str) -> Vec<&'p [String]> {
    let mut found = Vec::new();
    for path in paths {
        let Some((first, rest)) = path.split_first() else {
            continue;
        };
        if first == "**" {
            // Through one level more, and as if it was not there.
            found.push(*path);
            if rest.is_empty() {
                found.push(rest);
            } else {
                found.extend(behind(&[rest], name));
            }
        } else if fits(first, name) {
            found.push(rest);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The members that paths lead to; recursion is bounded by the depth of JSON.
fn select(json: Json, paths: &[&[String]]) -> Option<Json> {
    match json {
        Json::Object(members) => {
            let mut kept = Object::new();
            for (name, value) in members {
                let rests = behind(paths, &name);
                if rests.iter().any(|rest| rest.is_empty()) {
                    kept.insert(name, value);
                } else if !rests.is_empty()
                    && let Some(value) = select(value, &rests)
                {
                    kept.insert(name, value);
                }
            }
            (!kept.is_empty()).then_some(Json::Object(kept))
        }
        Json::Array(elements) => {
            let kept: Vec<Json> = elements
                .into_iter()
                .filter_map(|element| select(element, paths))
                .collect();
            (!kept.is_empty()).then_some(Json::Array(kept))
        }
        _ => None,
    }
}

fn leave_out(json: &mut Json, paths: &[&[String]]) {
    match json {
        Json::Object(members) => {
            members.retain(|name, value| {
                let rests = behind(paths, name);
                if rests.iter().any(|rest| rest.is_empty()) {
                    return false;
                }
                if !rests.is_empty() {
                    leave_out(value, &rests);
                }
                true
            });
        }
        Json::Array(elements) => elements
            .iter_mut()
            .for_each(|element| leave_out(element, paths)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_chosen_by_their_paths() {
        let answer = json!({
            "took": 3,
            "hits": {"total": {"value": 2}, "hits": [
                {"_id": "a", "_source": {"message": "x", "user": {"id": 1}}},
                {"_id": "b", "_source": {"user": {"id": 2}}},
            ]},
            "aggregations": {"n": {"value": 7}},
        });
        let table = [
            ("took", json!({"took": 3})),
            ("hits.total", json!({"hits": {"total": {"value": 2}}})),
            (
                "hits.hits._source.message",
                json!({"hits": {"hits": [{"_source": {"message": "x"}}]}}),
            ),
            (
                "hits.hits._id,t*k",
                json!({"took": 3, "hits": {"hits": [{"_id": "a"}, {"_id": "b"}]}}),
            ),
            (
                "**.value",
                json!({"hits": {"total": {"value": 2}}, "aggregations": {"n": {"value": 7}}}),
            ),
            (
                "hits.**.id",
                json!({"hits": {"hits": [
                    {"_source": {"user": {"id": 1}}}, {"_source": {"user": {"id": 2}}},
                ]}}),
            ),
            ("nothing", json!({})),
            (
                "-hits,-aggregations.n.value",
                json!({"took": 3, "aggregations": {"n": {}}}),
            ),
            (
                "hits.hits,-**._source",
                json!({"hits": {"hits": [{"_id": "a"}, {"_id": "b"}]}}),
            ),
        ];
        for (paths, expected) in table {
            let paths_read = FilterPath::read(paths).unwrap();
            assert_eq!(paths_read.of(answer.clone()), expected, "{paths}");
        }
        // Rests of such a path do not multiply.
        let deep = (0..24).fold(json!({"v": 1}), |inner, _| json!({ "a": inner }));
        let stars = format!("{}v", "**.".repeat(NAMES_MAX - 1));
        let stars = FilterPath::read(&stars).unwrap();
        assert_eq!(stars.of(deep.clone()), deep);
        assert_eq!(FilterPath::read("").unwrap().of(answer.clone()), answer);
        assert!(FilterPath::read(&"a,".repeat(300)).is_err());
    }
}
