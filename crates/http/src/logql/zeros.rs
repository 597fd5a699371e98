//! Where no number means zero: counts and sums of lines, which are not there where no lines are.

use logpond_search::logql::{Metric, Operator, RangeFunction, VectorFunction};

/// Whether an instant without a number of a series is one with the number zero.
pub(super) fn is_additive(metric: &Metric) -> bool {
    match metric {
        Metric::Range(range) => matches!(
            range.function,
            RangeFunction::CountOverTime
                | RangeFunction::Rate
                | RangeFunction::BytesOverTime
                | RangeFunction::BytesRate
                | RangeFunction::SumOverTime
        ),
        Metric::Vector(vector) => {
            // Of the largest ones, a series that is not there may have been too small.
            let is_of_all = matches!(
                vector.function,
                VectorFunction::Sum
                    | VectorFunction::Max
                    | VectorFunction::Min
                    | VectorFunction::Avg
                    | VectorFunction::Sort
                    | VectorFunction::SortDesc
            );
            is_of_all && is_additive(&vector.of)
        }
        Metric::Binary(binary) => {
            let (left, right) = (&binary.left, &binary.right);
            match binary.operator {
                Operator::Mul => {
                    is_number(right) && is_additive(left) || is_number(left) && is_additive(right)
                }
                Operator::Div => is_number(right) && is_additive(left),
                _ => false,
            }
        }
        Metric::LabelReplace(replace) => is_additive(&replace.of),
        Metric::Literal(_) | Metric::VectorLiteral(_) => false,
    }
}

fn is_number(metric: &Metric) -> bool {
    matches!(metric, Metric::Literal(number) if number.is_finite() && *number != 0.0)
}

/// Whether there is one series, without labels, however many lines there are.
pub(super) fn is_one_series(metric: &Metric) -> bool {
    match metric {
        Metric::Vector(vector) => {
            let is_sum = vector.function == VectorFunction::Sum;
            let labels = vector.grouping.as_ref();
            is_sum && labels.is_none_or(|by| !by.is_without && by.labels.is_empty())
        }
        Metric::Binary(binary) => is_one_series(&binary.left) || is_one_series(&binary.right),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use logpond_search::logql::{self, Query};

    use super::*;

    #[test]
    fn counts_are_zero_where_nothing_is() {
        let table = [
            ("count_over_time({}[1m])", true, false),
            ("sum(rate({}[1m]))", true, true),
            ("sum by () (rate({}[1m])) * 60", true, true),
            ("sum by (host) (bytes_rate({}[1m])) / 1024", true, false),
            ("sum without (host) (bytes_rate({}[1m]))", true, false),
            ("sum(sum_over_time({} | unwrap bytes [1m]))", true, true),
            ("max(rate({}[1m]))", true, false),
            ("topk(3, sum by (host) (rate({}[1m])))", false, false),
            ("avg_over_time({} | unwrap bytes [1m])", false, false),
            ("sum(rate({}[1m])) > 5", false, true),
            ("sum(rate({}[1m])) + 1", false, true),
            ("sum(rate({}[1m])) / 0", false, true),
            ("absent_over_time({}[1m])", false, false),
            ("vector(1)", false, false),
        ];
        for (text, additive, one) in table {
            let Ok(Query::Metric(metric)) = logql::parse(text) else {
                panic!("{text} is a query for numbers");
            };
            assert_eq!(is_additive(&metric), additive, "{text}");
            assert_eq!(is_one_series(&metric), one, "{text}");
        }
    }
}
