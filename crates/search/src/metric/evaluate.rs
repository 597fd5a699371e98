//! A query for numbers, from its tables to its answer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use logpond_record::{Timestamp, cast};

use super::aggregate::{aggregate, first_by, ignores_order, wanted_of};
use super::binary::{of_numbers, of_series, with_number};
use super::leaf::{Leaf, LeafSpec};
use super::rows::{Order, Rows};
use super::series::SeriesLabels;
use super::table::{RangeTable, TABLE_BYTES_MAX};
use super::windows::Times;
use crate::logql::{
    Grouping, LabelReplace, MatchOperator, Metric, RangeAggregation, RangeFunction,
    VectorAggregation, VectorFunction, translate_regex,
};
use crate::pattern::compile_with_groups;
use crate::query::Filter;
use crate::template::expand;

/// The most numbers of an answer: half a gigabyte of them as text.
const POINTS_MAX: usize = 20 << 20;

/// A series at an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The series' labels.
    pub labels: Arc<SeriesLabels>,
    /// Its number.
    pub value: f64,
}

/// A series over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The labels.
    pub labels: Arc<SeriesLabels>,
    /// Numbers and their times; instants without one are left out.
    pub points: Vec<(Timestamp, f64)>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A number, of an instant.
    Scalar(f64),
    /// Series at an instant; in order if the query sorts.
    Vector(Vec<Sample>),
    /// Series over time, in the order of their labels.
    Matrix(Vec<Series>),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvaluationError {
    /// Several series of a side are the same by the labels that match.
    Duplicates(&'static str),
    /// Several series of the left belong to one of the right.
    ManyToOne,
    /// Series of the answer would have the same labels.
    Ambiguous,
    /// A table was full.
    Memory,
    /// The answer has more numbers than fit.
    Points,
    /// An estimate over a range.
    ApproxRange,
    /// A part of the query does not compile.
    Compile(String),
    /// Nobody wants the answer any more.
    Unwanted,
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvaluationError::Duplicates(side) => write!(
                f,
                "found duplicate series on the {side} hand-side; many-to-many matching not \
                 allowed: matching labels must be unique on one side"
            ),
            EvaluationError::ManyToOne => f.write_str(
                "multiple matches for labels: many-to-one matching must be explicit \
                 (group_left/group_right)",
            ),
            EvaluationError::Ambiguous => f.write_str(
                "multiple matches for labels: grouping labels must ensure unique matches",
            ),
            EvaluationError::Memory => write!(
                f,
                "the series and numbers of the query need more than {} MiB of memory: aggregate by \
                 fewer labels, or take a shorter range",
                TABLE_BYTES_MAX >> 20
            ),
            EvaluationError::Unwanted => f.write_str("nobody wants the answer any more"),
            EvaluationError::Points => write!(
                f,
                "the answer has more than {POINTS_MAX} numbers: aggregate by fewer labels, or take a \
                 longer step"
            ),
            EvaluationError::ApproxRange => {
                f.write_str("approx_topk is only supported on instant queries")
            }
            EvaluationError::Compile(error) => f.write_str(error),
        }
    }
}

impl std::error::Error for EvaluationError {}

/// A query and the tables that it needs.
#[derive(Debug)]
pub struct Plan {
    query: Metric,
    times: Times,
    is_instant: bool,
    leaves: Vec<Arc<Leaf>>,
    /// The filter of each leaf.
    filters: Vec<Filter>,
}

impl Plan {
    /// Plans a query at one instant.
    ///
    /// # Errors
    /// When a part of it does not compile.
    pub fn instant(query: Metric, at: Timestamp, now_ns: i64) -> Result<Plan, EvaluationError> {
        Plan::new(query, Times::instant(at), true, now_ns)
    }

    /// Plans a query at many instants.
    ///
    /// # Errors
    /// When a part of it does not compile, or goes with one instant only.
    pub fn range(query: Metric, times: Times, now_ns: i64) -> Result<Plan, EvaluationError> {
        if has_estimate(&query) {
            return Err(EvaluationError::ApproxRange);
        }
        Plan::new(query, times, false, now_ns)
    }

    fn new(
        query: Metric,
        times: Times,
        is_instant: bool,
        now_ns: i64,
    ) -> Result<Plan, EvaluationError> {
        let query = simpler(query);
        let mut specs = Vec::new();
        collect(&query, None, &mut |aggregation, reduce| {
            let spec = LeafSpec {
                aggregation: aggregation.clone(),
                reduce: reducible(aggregation, reduce),
                times,
                now_ns,
            };
            if !specs.contains(&spec) {
                specs.push(spec);
            }
        });
        let leaves = specs.into_iter().map(|spec| Leaf::new(spec).map(Arc::new));
        let leaves: Vec<Arc<Leaf>> = leaves
            .collect::<Result<_, _>>()
            .map_err(EvaluationError::Compile)?;
        Ok(Plan {
            filters: leaves.iter().map(|leaf| leaf.filter().clone()).collect(),
            leaves,
            query,
            times,
            is_instant,
        })
    }

    /// What is to be filled; [`Plan::evaluate`] takes the tables in this order.
    pub fn leaves(&self) -> &[Arc<Leaf>] {
        &self.leaves
    }

    /// The records that fill each of the leaves, in their order.
    pub fn filters(&self) -> &[Filter] {
        &self.filters
    }

    /// The same plan over other records: each filter becomes what this makes of it.
    #[must_use]
    pub fn filtered(&self, change: impl Fn(&Filter) -> Filter) -> Plan {
        Plan {
            query: self.query.clone(),
            times: self.times,
            is_instant: self.is_instant,
            leaves: self.leaves.clone(),
            filters: self.filters.iter().map(change).collect(),
        }
    }

    /// In which order the series of tables are needed.
    fn order(&self) -> Order {
        let Metric::Vector(vector) = &self.query else {
            return Order::ByLabels;
        };
        if self.is_instant && of_one_table(vector).is_some() && ignores_order(vector) {
            Order::Any
        } else {
            Order::ByLabels
        }
    }

    /// The query's answer, of its tables. Whether it is still wanted is asked before each instant.
    ///
    /// # Errors
    /// See [`EvaluationError`].
    pub fn evaluate(
        &self,
        tables: Vec<RangeTable>,
        mut is_wanted: impl FnMut() -> bool,
    ) -> Result<Answer, EvaluationError> {
        if tables.iter().any(RangeTable::is_full) {
            return Err(EvaluationError::Memory);
        }
        let order = self.order();
        let tables = tables.into_iter().map(|table| Rows::of(table, order));
        let evaluation = Evaluation {
            plan: self,
            tables: tables.collect(),
        };
        if self.is_instant {
            return Ok(match evaluation.step(&self.query, None, 0)? {
                Vector::Scalar(number) => Answer::Scalar(number),
                Vector::Series(samples) => Answer::Vector(samples),
            });
        }
        let mut series: BTreeMap<Arc<SeriesLabels>, Vec<(Timestamp, f64)>> = BTreeMap::new();
        let mut points = 0;
        for step in 0..self.times.count {
            if !is_wanted() {
                return Err(EvaluationError::Unwanted);
            }
            let samples = match evaluation.step(&self.query, None, step)? {
                Vector::Scalar(value) => vec![Sample {
                    labels: Arc::default(),
                    value,
                }],
                Vector::Series(samples) => samples,
            };
            points += samples.len();
            if points > POINTS_MAX {
                return Err(EvaluationError::Points);
            }
            let at = Timestamp(self.times.at(step));
            for sample in samples {
                series
                    .entry(sample.labels)
                    .or_default()
                    .push((at, sample.value));
            }
        }
        let series = series.into_iter();
        Ok(Answer::Matrix(
            series
                .map(|(labels, points)| Series { labels, points })
                .collect(),
        ))
    }
}

/// The same query with less work: where groups are only counted, their numbers do not matter, and may be such that
/// lines can be put together by group at once.
fn simpler(query: Metric) -> Metric {
    use VectorFunction as V;
    match query {
        Metric::Vector(mut vector) => {
            vector.of = simpler(vector.of);
            if vector.function == V::Count
                && let Metric::Vector(inner) = &mut vector.of
                && matches!(
                    inner.function,
                    V::Count | V::Avg | V::Min | V::Max | V::Stddev | V::Stdvar
                )
            {
                let function = std::mem::replace(&mut inner.function, V::Sum);
                if !is_done(inner) {
                    inner.function = function;
                }
            }
            Metric::Vector(vector)
        }
        Metric::Binary(mut binary) => {
            binary.left = simpler(binary.left);
            binary.right = simpler(binary.right);
            Metric::Binary(binary)
        }
        Metric::LabelReplace(mut replace) => {
            replace.of = simpler(replace.of);
            Metric::LabelReplace(replace)
        }
        Metric::Range(_) | Metric::Literal(_) | Metric::VectorLiteral(_) => query,
    }
}

/// Whether a vector aggregation finds its groups as they are: the lines were put together by them.
fn is_done(vector: &VectorAggregation) -> bool {
    match &vector.of {
        Metric::Range(aggregation) => reducible(aggregation, Some(vector)).is_some(),
        _ => false,
    }
}

/// The range aggregation whose table has what a vector aggregation looks at as it is, with the vector
/// aggregation right around it.
fn of_one_table(vector: &VectorAggregation) -> Option<(&RangeAggregation, &VectorAggregation)> {
    match &vector.of {
        Metric::Range(aggregation) => Some((aggregation, vector)),
        Metric::Vector(inner) if is_done(inner) => match &inner.of {
            Metric::Range(aggregation) => Some((aggregation, inner)),
            _ => None,
        },
        _ => None,
    }
}

fn has_estimate(query: &Metric) -> bool {
    match query {
        Metric::Vector(vector) => {
            vector.function == VectorFunction::ApproxTopk || has_estimate(&vector.of)
        }
        Metric::Binary(binary) => has_estimate(&binary.left) || has_estimate(&binary.right),
        Metric::LabelReplace(replace) => has_estimate(&replace.of),
        Metric::Range(_) | Metric::Literal(_) | Metric::VectorLiteral(_) => false,
    }
}

/// Hands over the range aggregations, each with the vector aggregation right around it.
fn collect<'q>(
    query: &'q Metric,
    around: Option<&'q VectorAggregation>,
    visit: &mut impl FnMut(&'q RangeAggregation, Option<&'q VectorAggregation>),
) {
    match query {
        Metric::Range(aggregation) => visit(aggregation, around),
        Metric::Vector(vector) => collect(&vector.of, Some(vector), visit),
        Metric::Binary(binary) => {
            collect(&binary.left, None, visit);
            collect(&binary.right, None, visit);
        }
        Metric::LabelReplace(replace) => collect(&replace.of, None, visit),
        Metric::Literal(_) | Metric::VectorLiteral(_) => {}
    }
}

/// The grouping by which lines may be put together at once: that of a sum around what adds up, and of
/// an extreme around the same one.
fn reducible(
    aggregation: &RangeAggregation,
    around: Option<&VectorAggregation>,
) -> Option<Grouping> {
    use {RangeFunction as R, VectorFunction as V};
    let around = around?;
    let adds_up = matches!(
        aggregation.function,
        R::CountOverTime | R::Rate | R::BytesOverTime | R::BytesRate | R::SumOverTime
    );
    let is_one = aggregation.grouping.is_none()
        && match around.function {
            V::Sum => adds_up,
            V::Min => aggregation.function == R::MinOverTime,
            V::Max => aggregation.function == R::MaxOverTime,
            _ => false,
        };
    is_one.then(|| around.grouping.clone().unwrap_or_default())
}

/// What a part of a query is at an instant.
enum Vector {
    Scalar(f64),
    Series(Vec<Sample>),
}

struct Evaluation<'p> {
    plan: &'p Plan,
    tables: Vec<Rows>,
}

impl Evaluation<'_> {
    /// The parser bounds how deeply queries nest, and so this recursion.
    fn step(
        &self,
        query: &Metric,
        around: Option<&VectorAggregation>,
        step: u64,
    ) -> Result<Vector, EvaluationError> {
        Ok(match query {
            Metric::Literal(number) => Vector::Scalar(*number),
            Metric::VectorLiteral(number) => Vector::Series(vec![Sample {
                labels: Arc::default(),
                value: *number,
            }]),
            Metric::Range(aggregation) => Vector::Series(self.range(aggregation, around, step)),
            Metric::Vector(vector) => {
                if let Some(samples) = self.of_table(vector, step) {
                    return Ok(Vector::Series(samples));
                }
                let of = self.series(&vector.of, Some(vector), step)?;
                Vector::Series(if is_done(vector) {
                    of
                } else {
                    aggregate(of, vector)
                })
            }
            Metric::LabelReplace(replace) => {
                let of = self.series(&replace.of, None, step)?;
                Vector::Series(replaced(of, replace)?)
            }
            Metric::Binary(operation) => {
                let left = self.step(&operation.left, None, step)?;
                let right = self.step(&operation.right, None, step)?;
                match (left, right) {
                    (Vector::Scalar(left), Vector::Scalar(right)) => {
                        Vector::Scalar(of_numbers(operation.operator, left, right))
                    }
                    (Vector::Scalar(number), Vector::Series(series)) => {
                        Vector::Series(with_number(operation, series, number, true))
                    }
                    (Vector::Series(series), Vector::Scalar(number)) => {
                        Vector::Series(with_number(operation, series, number, false))
                    }
                    (Vector::Series(left), Vector::Series(right)) => {
                        Vector::Series(of_series(operation, left, right)?)
                    }
                }
            }
        })
    }

    fn series(
        &self,
        query: &Metric,
        around: Option<&VectorAggregation>,
        step: u64,
    ) -> Result<Vec<Sample>, EvaluationError> {
        Ok(match self.step(query, around, step)? {
            Vector::Series(samples) => samples,
            Vector::Scalar(value) => vec![Sample {
                labels: Arc::default(),
                value,
            }],
        })
    }

    fn range(
        &self,
        aggregation: &RangeAggregation,
        around: Option<&VectorAggregation>,
        step: u64,
    ) -> Vec<Sample> {
        let Some((leaf, rows)) = self.table(aggregation, around) else {
            return Vec::new();
        };
        if aggregation.function != RangeFunction::AbsentOverTime {
            let sample = |(labels, value): (&Arc<SeriesLabels>, f64)| Sample {
                labels: Arc::clone(labels),
                value,
            };
            return rows.each(leaf, step).map(sample).collect();
        }
        match rows.values(leaf, step).next() {
            None => vec![Sample {
                labels: Arc::new(absent_labels(aggregation)),
                value: 1.0,
            }],
            Some(_) => Vec::new(),
        }
    }

    /// The table of a range aggregation.
    fn table(
        &self,
        aggregation: &RangeAggregation,
        around: Option<&VectorAggregation>,
    ) -> Option<(&Leaf, &Rows)> {
        let reduce = reducible(aggregation, around);
        let is_it = |leaf: &Arc<Leaf>| {
            leaf.spec().aggregation == *aggregation && leaf.spec().reduce == reduce
        };
        let at = self.plan.leaves.iter().position(is_it)?;
        Some((&self.plan.leaves[at], self.tables.get(at)?))
    }

    /// How many series of a table there are, or the first ones by their numbers, where that is asked of all
    /// together: without making labels of series that nobody sees.
    fn of_table(&self, vector: &VectorAggregation, step: u64) -> Option<Vec<Sample>> {
        use VectorFunction as V;
        let (aggregation, around) = of_one_table(vector)?;
        if !vector.grouping.as_ref().is_none_or(Grouping::is_of_all) {
            return None;
        }
        if aggregation.function == RangeFunction::AbsentOverTime {
            return None;
        }
        let (leaf, rows) = self.table(aggregation, Some(around))?;
        let is_descending = match vector.function {
            V::Count => {
                let count = rows.values(leaf, step).count();
                let sample = (count > 0).then(|| Sample {
                    labels: Arc::default(),
                    value: cast::float(count),
                });
                return Some(sample.into_iter().collect());
            }
            V::Topk | V::ApproxTopk => true,
            V::Bottomk => false,
            _ => return None,
        };
        let first = first_by(
            rows.values(leaf, step).collect(),
            (wanted_of(vector), is_descending),
            |(_, value)| *value,
            |(a, _), (b, _)| rows.compare_labels(*a, *b),
        );
        let sample = |(place, value)| Sample {
            labels: Arc::new(rows.labels(place)),
            value,
        };
        Some(first.into_iter().map(sample).collect())
    }
}

/// The labels that lines would have that are not there: those that are asked for by one value.
fn absent_labels(aggregation: &RangeAggregation) -> SeriesLabels {
    let matchers = &aggregation.log.matchers;
    let mut labels = SeriesLabels::default();
    let mut removed = Vec::new();
    for matcher in matchers {
        if matcher.operator == MatchOperator::Equal && labels.get(&matcher.name).is_none() {
            labels = labels.with(&matcher.name, &matcher.value);
        } else {
            removed.push(matcher.name.clone())
        }
    }
    labels.without(&removed)
}

fn replaced(of: Vec<Sample>, replace: &LabelReplace) -> Result<Vec<Sample>, EvaluationError> {
    let regex = translate_regex(&replace.regex)
        .and_then(|translated| compile_with_groups(&format!("^(?:{})$", translated.source)))
        .map_err(|error| EvaluationError::Compile(error.to_string()))?;
    let mut captures = regex.create_captures();
    let samples = of.into_iter().map(|sample| {
        let source = sample.labels.get(&replace.source).unwrap_or_default();
        regex.captures(source.as_bytes(), &mut captures);
        if !captures.is_match() {
            return sample;
        }
        let mut value = Vec::new();
        let group = |name: &str| {
            let span = match name.parse() {
                Ok(number) => captures.get_group(number),
                Err(_) => captures.get_group_by_name(name),
            };
            span.map_or(Vec::new(), |span| source.as_bytes()[span.range()].to_vec())
        };
        expand(&replace.replacement, group, &mut value);
        let labels = sample
            .labels
            .with(&replace.target, &String::from_utf8_lossy(&value));
        Sample {
            labels: Arc::new(labels),
            value: sample.value,
        }
    });
    Ok(samples.collect())
}
