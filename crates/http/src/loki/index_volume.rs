//! `GET|POST /loki/api/v1/index/volume` and `…/volume_range`: bytes by labels, most first.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use hyper::Response;
use logpond_record::{TimeRange, Timestamp};
use logpond_search::aggregate::{LabelSet, StreamRow, StreamsRequest};
use logpond_search::logql::LabelMatcher;

use super::reply::{Writer, failed, gathered, seconds, write_labels, write_warnings};
use super::{LokiRequest, selector, times};
use crate::App;
use crate::body::Body;
use crate::error::ApiError;

/// Series of bytes: of each the steps that have some.
type Volumes = Vec<(LabelSet, BTreeMap<i64, u64>)>;

/// The key by which volumes are told apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VolumeGrouping {
    /// Values of labels.
    Series,
    /// Names of labels.
    Labels,
}

/// Nanoseconds of a millisecond, in which Loki counts steps, and before whose end a step ends.
const MS_NS: i64 = 1_000_000;

/// Steps that begin at whole multiples of their length since 1970, as Loki's do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Steps {
    /// When the step begins that the range begins in.
    first: Timestamp,
    /// The length of each, above 0.
    length_ns: i64,
}

impl Steps {
    /// The steps of a range; none if they are shorter than Loki can tell.
    fn of(range: TimeRange, length_ns: i64) -> Option<Steps> {
        let length_ns = length_ns - length_ns % MS_NS;
        (length_ns > 0).then(|| Steps {
            first: Timestamp(
                range
                    .from
                    .0
                    .saturating_sub(range.from.0.rem_euclid(length_ns)),
            ),
            length_ns,
        })
    }

    /// What the bytes of a step stand at: the millisecond before the next one begins, or the end of the
    /// range.
    fn end_of(self, step: i64, range: TimeRange) -> Timestamp {
        let next = i128::from(self.first.0) + (i128::from(step) + 1) * i128::from(self.length_ns);
        if next < i128::from(range.to.0) {
            Timestamp(i64::try_from(next - i128::from(MS_NS)).unwrap_or(i64::MAX))
        } else {
            range.to
        }
    }
}

/// The parameters of a request.
struct VolumeRequest {
    range: TimeRange,
    /// Nothing for one number over the whole range.
    steps: Option<Steps>,
    limit: usize,
    by: VolumeGrouping,
    targets: Vec<Box<str>>,
}

/// Sums bytes up: by the labels of `targetLabels`, or of the selector's matchers, or by all labels.
pub(super) async fn answer(
    app: &Arc<App>,
    request: LokiRequest,
    has_steps: bool,
) -> Result<Response<Body>, ApiError> {
    let wanted = wanted(&request, has_steps)?;
    let query = request.text("query").map(str::to_owned);
    let gather = move |app: &App, out: &mut _| {
        let matchers = selector::matchers(query.as_deref())?;
        let scope = selector::scope_of(&matchers, wanted.range)?;
        let streams = streams_asked(&wanted, &matchers);
        let (streams, trailer) = app.engine.streams(&scope, &streams, out).map_err(failed)?;
        let volumes = volumes(streams, &wanted);
        Ok(((volumes, wanted), trailer))
    };
    gathered(
        app,
        &request.headers,
        gather,
        |(volumes, wanted), warnings, to| write(&volumes, &wanted, warnings, to),
    )
    .await
}

/// How many series are wanted; 0 stands for as many as without the parameter, unlike elsewhere.
fn limit(request: &LokiRequest) -> Result<u64, ApiError> {
    match request.text("limit") {
        Some("0") => Ok(times::LIMIT_DEFAULT),
        _ => times::limit(request),
    }
}

fn wanted(request: &LokiRequest, has_steps: bool) -> Result<VolumeRequest, ApiError> {
    let range = times::range(request)?;
    let by = match request.text("aggregateBy") {
        None | Some("series") => VolumeGrouping::Series,
        Some("labels") => VolumeGrouping::Labels,
        Some(other) => {
            return Err(ApiError::bad_request(format!(
                "invalid aggregateBy '{other}': it is series or labels"
            )));
        }
    };
    let targets = request.text("targetLabels").unwrap_or_default();
    let targets = targets.split(',').map(str::trim);
    Ok(VolumeRequest {
        range,
        steps: if has_steps {
            Steps::of(range, times::step_ns(request, range)?)
        } else {
            None
        },
        limit: usize::try_from(limit(request)?).unwrap_or(usize::MAX),
        by,
        targets: targets
            .filter(|name| !name.is_empty())
            .map(Box::from)
            .collect(),
    })
}

fn streams_asked(wanted: &VolumeRequest, matchers: &[LabelMatcher]) -> StreamsRequest {
    let mut names = wanted.targets.clone();
    // By the names of labels all of them count, unless some are named.
    if names.is_empty() && wanted.by == VolumeGrouping::Series {
        for matcher in matchers {
            let name: Box<str> = (*matcher.name).into();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    StreamsRequest {
        by: (!names.is_empty()).then_some(names),
        steps: wanted.steps.map(|steps| (steps.first, steps.length_ns)),
    }
}

/// The volumes, largest first, equal ones by their labels.
fn volumes(streams: Vec<StreamRow>, wanted: &VolumeRequest) -> Volumes {
    let mut volumes: BTreeMap<LabelSet, BTreeMap<i64, u64>> = BTreeMap::new();
    let mut add = |labels: LabelSet, row: &StreamRow| {
        *volumes
            .entry(labels)
            .or_default()
            .entry(row.step)
            .or_default() += row.tally.bytes;
    };
    for row in &streams {
        match wanted.by {
            VolumeGrouping::Series if row.labels.is_empty() => {}
            VolumeGrouping::Series => add(row.labels.clone(), row),
            VolumeGrouping::Labels => {
                for (name, _) in row.labels.iter() {
                    add(LabelSet::of_name(name), row);
                }
            }
        }
    }
    let total = |steps: &BTreeMap<i64, u64>| -> u64 { steps.values().sum() };
    let mut volumes: Volumes = volumes.into_iter().collect();
    volumes.sort_by_key(|(_, steps)| std::cmp::Reverse(total(steps)));
    volumes.truncate(wanted.limit);
    volumes
}

fn write(
    volumes: &Volumes,
    wanted: &VolumeRequest,
    warnings: &[String],
    to: Writer<'_>,
) -> io::Result<()> {
    // Loki calls it a matrix once a series has two points, whatever was asked for.
    let is_matrix = volumes.iter().any(|(_, steps)| steps.len() > 1);
    let kind = if is_matrix { "matrix" } else { "vector" };
    write!(
        to,
        "{{\"status\":\"success\",\"data\":{{\"resultType\":\"{kind}\",\"result\":["
    )?;
    for (at, (labels, steps)) in volumes.iter().enumerate() {
        if at > 0 {
            to.write_all(b",")?;
        }
        to.write_all(b"{\"metric\":")?;
        match wanted.by {
            VolumeGrouping::Series => write_labels(labels.iter(), to)?,
            VolumeGrouping::Labels => write_labels(labels.iter().map(|(name, _)| (name, "")), to)?,
        }
        let points = steps.iter().map(|(step, bytes)| {
            let time = match wanted.steps {
                Some(steps) => steps.end_of(*step, wanted.range),
                None => wanted.range.to,
            };
            format!("[{},\"{bytes}\"]", seconds(time))
        });
        let points = points.collect::<Vec<_>>().join(",");
        if is_matrix {
            write!(to, ",\"values\":[{points}]}}")?
        } else {
            write!(to, ",\"value\":{points}}}")?
        }
    }
    to.write_all(b"],\"stats\":{}}")?;
    write_warnings(warnings, to)?;
    to.write_all(b"}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    fn range(from_ms: i64, to_ms: i64) -> TimeRange {
        TimeRange {
            from: Timestamp(from_ms * MS_NS),
            to: Timestamp(to_ms * MS_NS),
        }
    }

    #[test]
    fn steps_begin_at_multiples_of_their_length() {
        let table: [(i64, i64, i64, &[i64]); 5] = [
            (990, 10_000, 5_000, &[4_999, 10_000]),
            (990, 10_001, 5_000, &[4_999, 9_999, 10_001]),
            (5_000, 9_000, 5_000, &[9_000]),
            (0, 3_000, 1_000, &[999, 1_999, 3_000]),
            (-990, 10, 700, &[-701, -1, 10]),
        ];
        for (from, to, step, expected) in table {
            let range = range(from, to);
            let steps = Steps::of(range, step * MS_NS).unwrap();
            let ends = (0..expected.len() as i64).map(|step| steps.end_of(step, range).0 / MS_NS);
            assert_eq!(ends.collect::<Vec<_>>(), expected, "{from}..{to} by {step}");
        }
        assert_eq!(Steps::of(range(0, 1), MS_NS - 1), None);
        let steps = Steps::of(range(0, 1), SECOND_NS + 1).unwrap();
        assert_eq!(steps.length_ns, SECOND_NS, "in milliseconds");
        let far = Steps {
            first: Timestamp(i64::MAX - 1),
            length_ns: i64::MAX,
        };
        assert_eq!(far.end_of(i64::MAX, TimeRange::ALL), TimeRange::ALL.to);
    }

    /// What is answered for series of these steps with their bytes.
    fn written(steps: Option<i64>, series: &[&[(i64, u64)]]) -> String {
        let range = range(1_500, 60_000);
        let wanted = VolumeRequest {
            range,
            steps: steps.and_then(|length_ns| Steps::of(range, length_ns)),
            limit: 10,
            by: VolumeGrouping::Labels,
            targets: Vec::new(),
        };
        let names = ["a", "b"];
        let series = series.iter().zip(names);
        let volumes: Volumes = series
            .map(|(steps, name)| (LabelSet::of_name(name), steps.iter().copied().collect()))
            .collect();
        let mut out = Vec::new();
        write(&volumes, &wanted, &[], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let data = text.strip_prefix("{\"status\":\"success\",\"data\":{\"resultType\":");
        data.unwrap().replace(",\"stats\":{}}}\n", "")
    }

    #[test]
    fn a_matrix_has_a_series_of_several_points() {
        let second = Some(SECOND_NS);
        assert_eq!(written(None, &[]), r#""vector","result":[]"#);
        assert_eq!(written(second, &[]), r#""vector","result":[]"#);
        assert_eq!(
            written(None, &[&[(0, 7)]]),
            r#""vector","result":[{"metric":{"a":""},"value":[60,"7"]}]"#
        );
        assert_eq!(
            written(second, &[&[(1, 7)], &[(57, 6)]]),
            concat!(
                r#""vector","result":[{"metric":{"a":""},"value":[2.999,"7"]},"#,
                r#"{"metric":{"b":""},"value":[58.999,"6"]}]"#
            )
        );
        assert_eq!(
            written(second, &[&[(0, 7), (57, 1)], &[(57, 6)]]),
            concat!(
                r#""matrix","result":[{"metric":{"a":""},"values":[[1.999,"7"],[58.999,"1"]]},"#,
                r#"{"metric":{"b":""},"values":[[58.999,"6"]]}]"#
            )
        );
    }
}
