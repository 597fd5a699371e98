//! A range aggregation, compiled: which records count, and what is kept of each.

use std::sync::Arc;

use logpond_record::{TimeRange, Timestamp};
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::cells::CellKind;
use super::stages::effective;
use super::windows::{Times, Windows};
use crate::logql::{
    self, Conversion, Grouping, Metric, NamedLabels, Pushdown, Query, RangeAggregation,
    RangeFunction, Stage, StageKind,
};
use crate::pipeline::{DUPLICATE_SUFFIX, ERROR, ERROR_DETAILS, Pipeline, Unwrap};
use crate::query::Filter;
use crate::scan::GroupLabels;

/// What a table is of: all that other nodes need to fill the same one.
#[derive(Clone, Debug, PartialEq)]
pub struct LeafSpec {
    /// The range aggregation.
    pub aggregation: RangeAggregation,
    /// The labels by which series may be put together at once, as what is made of them does it anyway.
    pub reduce: Option<Grouping>,
    /// The instants.
    pub times: Times,
    /// The time of the query, for templates.
    pub now_ns: i64,
}

impl LeafSpec {
    /// Appends the specification to a message.
    pub fn encode(&self, out: &mut Encoder) {
        self.encode_aggregation(out);
        out.time(Timestamp(self.times.start_ns));
        out.time(Timestamp(self.times.step_ns));
        out.number(self.times.count);
        out.time(Timestamp(self.now_ns));
    }

    /// Appends all but the times.
    pub(super) fn encode_aggregation(&self, out: &mut Encoder) {
        let text = Metric::Range(Box::new(self.aggregation.clone())).to_string();
        out.bytes(text.as_bytes());
        out.flag(self.reduce.is_some());
        if let Some(grouping) = &self.reduce {
            out.flag(grouping.is_without);
            out.count(grouping.labels.len());
            grouping
                .labels
                .iter()
                .for_each(|label| out.bytes(label.as_bytes()));
        }
    }

    /// Reads what [`LeafSpec::encode`] wrote.
    ///
    /// # Errors
    /// When the bytes are something else.
    pub fn decode(from: &mut Decoder<'_>) -> Result<LeafSpec, DecodeError> {
        const WHAT: &str = "a range aggregation";
        let text = from.text(logql::QUERY_BYTES_MAX * 2, WHAT)?;
        let aggregation = match logql::parse(text) {
            Ok(Query::Metric(Metric::Range(aggregation))) => *aggregation,
            _ => return Err(DecodeError::Malformed(WHAT)),
        };
        let mut reduce = None;
        if from.flag(WHAT)? {
            let is_without = from.flag(WHAT)?;
            let count = from.count(1, WHAT)?;
            let labels: Result<Vec<Box<str>>, DecodeError> = (0..count)
                .map(|_| Ok(from.text(logql::QUERY_BYTES_MAX, WHAT)?.into()))
                .collect();
            reduce = Some(Grouping {
                is_without,
                labels: labels?,
            });
        }
        let (start, step) = (from.time("a start")?, from.time("a step")?);
        let times = Times {
            start_ns: start.0,
            step_ns: step.0,
            count: from.number("the steps")?,
        };
        if times.step_ns <= 0 || times.count == 0 || times.count > super::STEPS_MAX + 1 {
            return Err(DecodeError::Malformed("the steps"));
        }
        Ok(LeafSpec {
            aggregation,
            reduce,
            times,
            now_ns: from.time("now")?.0,
        })
    }
}

/// A compiled range aggregation. It is shared by all tables of it.
#[derive(Debug)]
pub struct Leaf {
    spec: LeafSpec,
    pub(super) windows: Windows,
    pub(super) pipeline: Pipeline,
    pub(super) unwrap: Option<Unwrap>,
    pub(super) cells: CellKind,
    filter: Filter,
    /// The fields that are labels as they are named.
    named: NamedLabels,
    /// The labels that anything looks at, if that is known.
    pub(super) looked_at: Option<Arc<[Box<str>]>>,
    /// By which labels series are told apart.
    pub(super) grouping: Option<Grouping>,
    of_labels: Option<OfLabels>,
}

/// How records that the filter wants are decided about by their labels alone.
#[derive(Debug)]
pub(super) struct OfLabels {
    /// The labels that matter: these, or all with these among them.
    pub(super) by: GroupLabels,
    /// The label whose number is taken, if nothing else looks at it and it is a plain number; it is not
    /// among the names.
    pub(super) number: Option<Box<str>>,
    /// Whether lines are read as JSON first.
    pub(super) has_json: bool,
    /// The stages that are left then.
    pub(super) rest: Pipeline,
}

impl Leaf {
    /// Compiles a range aggregation.
    ///
    /// # Errors
    /// What is wrong with a stage; what was parsed always compiles.
    pub fn new(spec: LeafSpec) -> Result<Leaf, String> {
        let aggregation = &spec.aggregation;
        let unwrap = aggregation.unwrap.as_ref().map(Unwrap::new).transpose()?;
        let windows = Windows::new(spec.times, aggregation.range_ns, aggregation.offset_ns);
        let cells = CellKind::new(aggregation.function, unwrap.is_some());
        let grouping = grouping_of(&spec, unwrap.as_ref());
        let log = &aggregation.log;
        let named = NamedLabels::of_range(log, aggregation.unwrap.as_ref(), grouping.as_ref());
        let of_unwrap = aggregation.unwrap.as_ref();
        let looked_at = logql::looked_at(&log.stages, of_unwrap, grouping.as_ref());
        let effective = |stages: &[Stage]| effective(aggregation, stages, looked_at.as_deref());
        let pipeline = Pipeline::new(&effective(&log.stages), spec.now_ns)?;
        let Pushdown { filter, rest } = logql::pushdown(log);
        let stages = effective(&rest);
        let of_labels = of_labels(&spec, &named, grouping.as_ref(), &stages)?;
        Ok(Leaf {
            filter,
            named,
            looked_at: looked_at.map(Arc::from),
            windows,
            pipeline,
            unwrap,
            cells,
            grouping,
            of_labels,
            spec,
        })
    }

    /// The same with all stages and all labels, whether they matter or not.
    ///
    /// # Errors
    /// As for [`Leaf::new`].
    #[cfg(test)]
    pub(crate) fn plain(spec: LeafSpec) -> Result<Leaf, String> {
        let stages = spec.aggregation.log.stages.clone();
        let now_ns = spec.now_ns;
        let leaf = Leaf::new(spec)?;
        Ok(Leaf {
            pipeline: Pipeline::new(&stages, now_ns)?,
            looked_at: None,
            of_labels: None,
            ..leaf
        })
    }

    /// What was compiled.
    pub fn spec(&self) -> &LeafSpec {
        &self.spec
    }

    /// The times of the lines that count.
    pub fn range(&self) -> TimeRange {
        self.windows.range()
    }

    /// By which labels series are told apart; by all without one.
    pub fn grouping(&self) -> Option<&Grouping> {
        self.grouping.as_ref()
    }

    /// True if labels without text tell series apart; where series are grouped by labels, they are as good as none.
    pub(super) fn keeps_empty_labels(&self) -> bool {
        self.spec.reduce.is_none() && self.spec.aggregation.grouping.is_none()
    }

    /// The fields that are labels as they are named.
    pub(crate) fn named(&self) -> &NamedLabels {
        &self.named
    }

    /// Which records may count.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Whether a stage may ask what time it is: templates can.
    pub(super) fn looks_at_the_clock(&self) -> bool {
        let stages = self.spec.aggregation.log.stages.iter();
        let mut kinds = stages.map(|stage| &stage.kind);
        kinds.any(|kind| matches!(kind, StageKind::LineFormat(_) | StageKind::LabelFormat(_)))
    }

    /// How labels alone decide about records that the filter wants; `None` if lines are looked at, or
    /// labels that are not known by name.
    pub(super) fn of_labels(&self) -> Option<&OfLabels> {
        self.of_labels.as_ref()
    }

    /// Whether the lines themselves count, or are looked at.
    pub(super) fn looks_at_lines(&self) -> bool {
        !self.pipeline.is_empty() || (self.unwrap.is_none() && self.counts_bytes())
    }

    fn counts_bytes(&self) -> bool {
        counts_bytes(self.spec.aggregation.function)
    }
}

fn counts_bytes(function: RangeFunction) -> bool {
    matches!(
        function,
        RangeFunction::BytesOverTime | RangeFunction::BytesRate
    )
}

/// See [`Leaf::of_labels`].
fn of_labels(
    spec: &LeafSpec,
    named: &NamedLabels,
    grouping: Option<&Grouping>,
    rest: &[Stage],
) -> Result<Option<OfLabels>, String> {
    let aggregation = &spec.aggregation;
    if aggregation.unwrap.is_none() && counts_bytes(aggregation.function) {
        return Ok(None);
    }
    let (has_json, rest) = match rest {
        [
            Stage {
                kind: StageKind::Json(paths),
                ..
            },
            rest @ ..,
        ] if paths.is_empty() => (true, rest),
        rest => (false, rest),
    };
    let grouped = grouping.filter(|grouping| !grouping.is_without);
    let mut names = grouped.map_or(Vec::new(), |grouping| grouping.labels.clone());
    for stage in rest {
        match &stage.kind {
            StageKind::LabelFilter(filter) => logql::add_filter(filter, &mut names),
            StageKind::Drop(_) | StageKind::Keep(_) => {}
            _ => return Ok(None),
        }
    }
    let mut number = None;
    if let Some(unwrap) = &aggregation.unwrap {
        let filters = unwrap.filters.iter();
        filters.for_each(|filter| logql::add_filter(filter, &mut names));
        let is_plain = unwrap.conversion == Conversion::Number && !names.contains(&unwrap.label);
        let is_kept = |stage: &Stage| matches!(stage.kind, StageKind::LabelFilter(_));
        if is_plain && rest.iter().all(is_kept) {
            number = Some(unwrap.label.clone());
        } else {
            names.push(unwrap.label.clone())
        }
    }
    // Only a line tells why it cannot be parsed.
    if has_json && names.iter().any(|name| **name == *ERROR_DETAILS) {
        return Ok(None);
    }
    names.retain(|name| ![ERROR, ERROR_DETAILS].contains(&&**name));
    names.sort_unstable();
    names.dedup();
    // What was a field before may be another label behind the parser, and a name may get a suffix.
    let is_unclear = |name: &str| {
        let mut referred = named.referred.iter();
        referred.any(|known| **known == *name) || name.ends_with(DUPLICATE_SUFFIX)
    };
    if has_json && names.iter().chain(&number).any(|name| is_unclear(name)) {
        return Ok(None);
    }
    let by = match grouped {
        Some(_) => GroupLabels::Named(names),
        None if has_json => return Ok(None),
        None => {
            let named = named.selected.iter().chain(&named.referred);
            GroupLabels::All(
                named
                    .filter(|name| number.as_ref() != Some(*name))
                    .cloned()
                    .collect(),
            )
        }
    };
    Ok(Some(OfLabels {
        by,
        number,
        has_json,
        rest: Pipeline::new(rest, spec.now_ns)?,
    }))
}

/// The grouping of a leaf: its own, then what can be reduced of it; without the label that is a number.
fn grouping_of(spec: &LeafSpec, unwrap: Option<&Unwrap>) -> Option<Grouping> {
    let aggregation = &spec.aggregation;
    if aggregation.function == RangeFunction::AbsentOverTime {
        return Some(Grouping::default());
    }
    let own = aggregation.grouping.clone().or_else(|| spec.reduce.clone());
    let Some(unwrap) = unwrap else { return own };
    let label: Box<str> = unwrap.label().into();
    match own {
        // Without labels nothing is put together: an empty list is as good as none.
        Some(grouping) if !grouping.is_without && spec.reduce.is_some() => Some(grouping),
        Some(grouping) if !grouping.is_without => Some(grouping),
        Some(mut grouping) => {
            grouping.labels.push(label);
            Some(grouping)
        }
        None => Some(Grouping {
            is_without: true,
            labels: vec![label],
        }),
    }
}
