//! Conditions of SQL as filters of the product.
//!
//! Invariant: every record for which the condition is true passes the filter. If the filter is exact, no
//! other does; else DataFusion decides again.
//!
//! What makes a filter inexact: it compares numbers where SQL compares texts (`'5'` is not `'5.0'`), it
//! has no third truth value, and it looks at bytes where SQL sees U+FFFD.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Like, Operator};
use logpond_record::{Severity, TimeRange, Timestamp};
use logpond_search::columns::{ColumnKind, ColumnRequest};
use logpond_search::query::{self, Comparison, FieldTest, Pattern};
use logpond_search::{Filter, Number, label};

use crate::layout::Layout;
use crate::mixed;
use crate::number_key;

/// The text that filters have for a null.
const NULL: &str = "null";

/// The character that stands for bytes that are no text.
const REPLACEMENT: char = '\u{fffd}';

/// A condition as a filter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PushedFilter {
    /// Which records.
    pub(crate) filter: Filter,
    /// Their event times.
    pub(crate) range: TimeRange,
    /// Whether the condition is true for all records that pass.
    pub(crate) is_exact: bool,
}

/// The filter of a condition; `None` if it says nothing about which records are wanted.
pub(crate) fn push(expr: &Expr, layout: &Layout) -> Option<PushedFilter> {
    if let Some(range) = range_of(expr, layout) {
        return Some(PushedFilter {
            filter: Filter::All,
            range,
            is_exact: true,
        });
    }
    let PartialFilter { filter, is_exact } = told(expr, layout)?;
    // Nodes send each other filters as text, which has bounds of its own.
    let is_sent = query::parse(&filter.to_string()).is_ok_and(|parsed| parsed == filter);
    is_sent.then_some(PushedFilter {
        filter,
        range: TimeRange::ALL,
        is_exact,
    })
}

/// A part of a condition as a filter.
struct PartialFilter {
    filter: Filter,
    is_exact: bool,
}

fn exact(filter: Filter) -> Option<PartialFilter> {
    let is_exact = true;
    Some(PartialFilter { filter, is_exact })
}

fn inexact(filter: Filter) -> Option<PartialFilter> {
    let is_exact = false;
    Some(PartialFilter { filter, is_exact })
}

/// The range of a condition on the time alone.
fn range_of(expr: &Expr, layout: &Layout) -> Option<TimeRange> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if *op == Operator::And => {
            let (a, b) = (range_of(left, layout)?, range_of(right, layout)?);
            Some(TimeRange {
                from: a.from.max(b.from),
                to: a.to.min(b.to),
            })
        }
        Expr::BinaryExpr(binary) => {
            let (column, op, value) = sides(binary, layout)?;
            let (time, end) = instants(value).filter(|_| &*column.name == "_time")?;
            range(op, time, end)
        }
        Expr::Between(Between {
            expr,
            negated: false,
            low,
            high,
        }) => {
            let column = column_of(expr, layout).filter(|column| &*column.name == "_time");
            let ((from, _), (_, to)) = (instants(literal(low)?)?, instants(literal(high)?)?);
            column.map(|_| TimeRange { from, to })
        }
        _ => None,
    }
}

/// The times that are so to a value, which holds those from `time` to `end`.
fn range(op: Operator, time: Timestamp, end: Timestamp) -> Option<TimeRange> {
    let (from, to) = match op {
        Operator::Eq => (time, end),
        Operator::Lt => (Timestamp::MIN, time),
        Operator::LtEq => (Timestamp::MIN, end),
        Operator::Gt => (end, Timestamp::MAX),
        Operator::GtEq => (time, Timestamp::MAX),
        _ => return None,
    };
    Some(TimeRange { from, to })
}

fn told(expr: &Expr, layout: &Layout) -> Option<PartialFilter> {
    match expr {
        Expr::Alias(alias) => told(&alias.expr, layout),
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And,
            right,
        }) => match (told(left, layout), told(right, layout)) {
            (Some(a), Some(b)) => Some(PartialFilter {
                is_exact: a.is_exact && b.is_exact,
                filter: Filter::and([a.filter, b.filter]),
            }),
            // What the other says is decided again.
            (Some(one), None) | (None, Some(one)) => inexact(one.filter),
            (None, None) => None,
        },
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Or,
            right,
        }) => {
            let (a, b) = (told(left, layout)?, told(right, layout)?);
            Some(PartialFilter {
                is_exact: a.is_exact && b.is_exact,
                filter: Filter::or([a.filter, b.filter]),
            })
        }
        Expr::BinaryExpr(binary) => {
            if let Some(told) = number_told(binary, layout) {
                return Some(told);
            }
            let (column, op, value) = sides(binary, layout)?;
            compared(column, op, value)
        }
        Expr::Column(_) => bool_is(expr, true, layout),
        Expr::IsTrue(inner) => bool_is(inner, true, layout),
        Expr::IsFalse(inner) => bool_is(inner, false, layout),
        Expr::Not(inner) => match &**inner {
            Expr::Column(_) => bool_is(inner, false, layout),
            inner => negated(told(inner, layout)?),
        },
        Expr::IsNotNull(inner) => {
            let column = filtered_column(inner, layout)?;
            inexact(Filter::field(&column.name, FieldTest::Exists))
        }
        Expr::InList(list) => list_told(list, layout),
        Expr::Between(between) => between_told(between, layout),
        Expr::Like(like) => like_told(like, layout),
        Expr::ScalarFunction(function) => function_told(function, layout),
        _ => None,
    }
}

/// Whether a column has one of some values.
fn list_told(list: &InList, layout: &Layout) -> Option<PartialFilter> {
    if let Some(column) = compared_as_number(&list.expr, layout) {
        return inexact(Filter::field(&column.name, FieldTest::Exists));
    }
    let column = filtered_column(&list.expr, layout)?;
    let each = list.list.iter().map(|value| equal(column, literal(value)?));
    let each: Vec<PartialFilter> = each.collect::<Option<_>>()?;
    let any = PartialFilter {
        is_exact: each.iter().all(|one| one.is_exact),
        filter: Filter::or(each.into_iter().map(|one| one.filter)),
    };
    if list.negated {
        negated(any)
    } else {
        Some(any)
    }
}

fn between_told(between: &Between, layout: &Layout) -> Option<PartialFilter> {
    if let Some(column) = compared_as_number(&between.expr, layout) {
        return inexact(Filter::field(&column.name, FieldTest::Exists));
    }
    let column = filtered_column(&between.expr, layout).filter(|_| !between.negated)?;
    let low = compared(column, Operator::GtEq, literal(&between.low)?)?;
    let high = compared(column, Operator::LtEq, literal(&between.high)?)?;
    Some(PartialFilter {
        is_exact: low.is_exact && high.is_exact,
        filter: Filter::and([low.filter, high.filter]),
    })
}

/// Where something is not true, it may also be unknown: the opposite lets these records through.
fn negated(inner: PartialFilter) -> Option<PartialFilter> {
    if inner.is_exact {
        inexact(Filter::negate(inner.filter))
    } else {
        None
    }
}

/// The column that an expression is.
fn column_of<'l>(expr: &Expr, layout: &'l Layout) -> Option<&'l ColumnRequest> {
    match expr {
        Expr::Column(column) => layout.column(&column.name),
        Expr::Alias(alias) => column_of(&alias.expr, layout),
        _ => None,
    }
}

/// The column that an expression is, if filters have conditions on it that mean the same.
fn filtered_column<'l>(expr: &Expr, layout: &'l Layout) -> Option<&'l ColumnRequest> {
    let column = column_of(expr, layout)?;
    let is_made_up = column.name.starts_with(label::LABEL_PREFIX)
        || column.name.starts_with("_id")
        || &*column.name == label::SEVERITY;
    (!is_made_up && column.kind != ColumnKind::Time).then_some(column)
}

/// The column of texts that are compared as numbers.
fn compared_as_number<'l>(expr: &Expr, layout: &'l Layout) -> Option<&'l ColumnRequest> {
    match expr {
        Expr::ScalarFunction(call) if call.func.name() == number_key::NAME => {
            let [text] = &call.args[..] else {
                return None;
            };
            filtered_column(text, layout).filter(|column| column.kind == ColumnKind::Text)
        }
        _ => None,
    }
}

/// Records that have a text, if its number is compared: others are null.
fn number_told(binary: &BinaryExpr, layout: &Layout) -> Option<PartialFilter> {
    let BinaryExpr { left, op, right } = binary;
    let sides = compared_as_number(left, layout).or_else(|| compared_as_number(right, layout));
    let column = sides.filter(|_| mixed::is_comparison(*op))?;
    inexact(Filter::field(&column.name, FieldTest::Exists))
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

/// The column and the value that are compared, the column first.
fn sides<'l, 'e>(
    binary: &'e BinaryExpr,
    layout: &'l Layout,
) -> Option<(&'l ColumnRequest, Operator, &'e ScalarValue)> {
    let BinaryExpr { left, op, right } = binary;
    if let (Some(column), Some(value)) = (column_of(left, layout), literal(right)) {
        return Some((column, *op, value));
    }
    let (column, value) = (column_of(right, layout)?, literal(left)?);
    Some((column, op.swap()?, value))
}

fn instant(value: &ScalarValue) -> Option<Timestamp> {
    match value {
        ScalarValue::TimestampNanosecond(Some(time), _) => Some(Timestamp(*time)),
        _ => None,
    }
}

/// The times that a value of a column of times holds: one, or those of a second.
fn instants(value: &ScalarValue) -> Option<(Timestamp, Timestamp)> {
    if let ScalarValue::Int64(Some(seconds)) = value {
        let at = |seconds: i64| Timestamp(seconds.saturating_mul(1_000_000_000));
        return Some((at(*seconds), at(seconds.saturating_add(1))));
    }
    let time = instant(value)?;
    Some((time, time.saturating_add(1)))
}

fn text(value: &ScalarValue) -> Option<&str> {
    match value {
        ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => {
            text.as_deref()
        }
        _ => None,
    }
}

fn compared(column: &ColumnRequest, op: Operator, value: &ScalarValue) -> Option<PartialFilter> {
    if let (Some(time), "_time") = (instant(value), &*column.name) {
        let test = FieldTest::Compare(comparison(op)?, time.to_string().into_bytes().into());
        return exact(Filter::field("_time", test));
    }
    if column.name.starts_with(label::LABEL_PREFIX) || column.kind == ColumnKind::Time {
        return None;
    }
    if &*column.name == label::SEVERITY && !text(value).is_some_and(is_severity_name) {
        return None;
    }
    match op {
        Operator::Eq => equal(column, value),
        Operator::NotEq => negated(equal(column, value)?),
        op => {
            let comparison = comparison(op)?;
            let (number, is_exact) = number(column, value)?;
            let test = FieldTest::Compare(comparison, number.into_bytes().into());
            let filter = Filter::field(&column.name, test);
            Some(PartialFilter { filter, is_exact })
        }
    }
}

/// Whether a text is how a severity is shown: filters know other words for it, SQL compares texts.
fn is_severity_name(text: &str) -> bool {
    Severity::of_word(text.as_bytes()).is_some_and(|severity| severity.name() == text)
}

fn comparison(op: Operator) -> Option<Comparison> {
    Some(match op {
        Operator::Eq => Comparison::Equal,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::LessOrEqual,
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// The number that a column of numbers is compared with, and whether both compare it alike: whole
/// numbers have one form, of others the last digits may count.
fn number(column: &ColumnRequest, value: &ScalarValue) -> Option<(String, bool)> {
    match (column.kind, value) {
        (ColumnKind::Int, ScalarValue::Int64(Some(int))) => Some((int.to_string(), true)),
        (ColumnKind::Float, ScalarValue::Float64(Some(float))) if float.is_finite() => {
            Some((float.to_string(), false))
        }
        _ => None,
    }
}

fn equal(column: &ColumnRequest, value: &ScalarValue) -> Option<PartialFilter> {
    let field = |text: &str| {
        let test = FieldTest::Compare(Comparison::Equal, text.as_bytes().into());
        Filter::field(&column.name, test)
    };
    match (column.kind, value) {
        // `0200`, ` 200` and `2e2` are this number, too, as a cast reads them; filters know fewer forms.
        (ColumnKind::Text, ScalarValue::Int64(Some(_)) | ScalarValue::Float64(Some(_))) => {
            inexact(Filter::field(&column.name, FieldTest::Exists))
        }
        (ColumnKind::Text, value) => {
            let text = text(value)?;
            // A null is called so, and has no text in SQL.
            let is_odd = text.is_empty() || text == NULL || text.contains(REPLACEMENT);
            let is_number = Number::parse(text.as_bytes()).is_some();
            (!is_odd).then(|| PartialFilter {
                filter: field(text),
                is_exact: !is_number,
            })
        }
        (ColumnKind::Bool, ScalarValue::Boolean(Some(bool))) => exact(field(&bool.to_string())),
        _ => {
            let (number, is_exact) = number(column, value)?;
            let filter = field(&number);
            Some(PartialFilter { filter, is_exact })
        }
    }
}

fn bool_is(expr: &Expr, wanted: bool, layout: &Layout) -> Option<PartialFilter> {
    let column = filtered_column(expr, layout)?;
    match column.kind {
        ColumnKind::Bool => equal(column, &ScalarValue::Boolean(Some(wanted))),
        _ => None,
    }
}

/// Records whose text in a column holds another one.
fn holds(column: &ColumnRequest, text: &str, case_insensitive: bool) -> Option<Filter> {
    let is_text = column.kind == ColumnKind::Text && !text.is_empty();
    let pattern = Pattern::substring(text.as_bytes(), case_insensitive);
    (is_text && !text.contains(REPLACEMENT))
        .then(|| Filter::field(&column.name, FieldTest::Contains(pattern)))
}

fn like_told(like: &Like, layout: &Layout) -> Option<PartialFilter> {
    let column = filtered_column(&like.expr, layout)?;
    let pattern = text(literal(&like.pattern)?)?;
    if like.case_insensitive && !pattern.is_ascii() {
        // Where letters have several forms, both may mean others by the same one.
        return None;
    }
    let parts = parts_of(pattern, like.escape_char.unwrap_or('\\'));
    let filters = parts.iter().filter(|part| !part.is_empty());
    let filters: Vec<Filter> = filters
        .map(|part| holds(column, part, like.case_insensitive))
        .collect::<Option<_>>()?;
    if filters.is_empty() {
        return None;
    }
    // Of `%text%` there are an empty part, the text and an empty part.
    let is_substring =
        matches!(&parts[..], [before, _, after] if before.is_empty() && after.is_empty());
    let told = PartialFilter {
        filter: Filter::and(filters),
        is_exact: is_substring
            && !pattern.contains('_')
            && !like.case_insensitive
            && !parts.iter().any(|part| is_part_of_null(part)),
    };
    if like.negated {
        negated(told)
    } else {
        Some(told)
    }
}

/// True if filters find this text in a null, which they call `null`, and which has no text in SQL.
fn is_part_of_null(text: &str) -> bool {
    !text.is_empty() && NULL.contains(text)
}

/// The texts between the wildcards of a pattern.
fn parts_of(pattern: &str, escape: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        let literal = match char {
            '%' | '_' => None,
            char if char == escape => chars.next().or(Some(char)),
            char => Some(char),
        };
        match (literal, parts.last_mut()) {
            (Some(char), Some(part)) => part.push(char),
            _ => parts.push(String::new()),
        }
    }
    parts
}

fn function_told(function: &ScalarFunction, layout: &Layout) -> Option<PartialFilter> {
    let [first, second] = &function.args[..] else {
        return None;
    };
    let column = filtered_column(first, layout)?;
    let part = text(literal(second)?)?;
    let filter = holds(column, part, false)?;
    match function.name() {
        "contains" if !is_part_of_null(part) => exact(filter),
        "contains" => inexact(filter),
        "starts_with" | "ends_with" => inexact(filter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::functions::expr_fn::{contains, starts_with};
    use datafusion::logical_expr::{col, lit, not};
    use logpond_record::Value;
    use logpond_search::aggregate::FieldTypes;

    use super::*;

    fn layout() -> Layout {
        let mut types = FieldTypes::new(false);
        types.add_value("status", &Value::Int(1));
        types.add_value("ms", &Value::Float(0.5));
        types.add_value("ok", &Value::Bool(true));
        types.add_value("host", &Value::Str("a".into()));
        types.add_value("odd \"name", &Value::Str("a".into()));
        Layout::of_all(&types, &std::collections::HashSet::new()).0
    }

    fn at(ns: i64) -> Expr {
        lit(ScalarValue::TimestampNanosecond(
            Some(ns),
            Some("+00:00".into()),
        ))
    }

    /// Conditions, what becomes of each, and whether that is exact.
    fn conditions() -> Vec<(Expr, Option<(&'static str, bool)>)> {
        [
            compared_conditions(),
            text_conditions(),
            joined_conditions(),
        ]
        .concat()
    }

    fn compared_conditions() -> Vec<(Expr, Option<(&'static str, bool)>)> {
        let odd = Expr::Column(datafusion::common::Column::from_name("odd \"name"));
        vec![
            (col("status").eq(lit(404i64)), Some(("status=404", true))),
            (lit(404i64).lt(col("status")), Some(("status>404", true))),
            (
                col("status").not_eq(lit(404i64)),
                Some(("status!=404", false)),
            ),
            (
                col("status").gt_eq(lit(400i64)),
                Some(("status>=400", true)),
            ),
            (col("ms").gt(lit(0.5)), Some(("ms>0.5", false))),
            (col("ms").eq(lit(f64::NAN)), None),
            (col("ok"), Some(("ok=true", true))),
            (not(col("ok")), Some(("ok=false", true))),
            (col("host").eq(lit("a b")), Some(("host=\"a b\"", true))),
            (col("host").eq(lit("5.0")), Some(("host=5.0", false))),
            (col("host").eq(lit("")), None),
            (col("host").eq(lit("null")), None),
            (col("host").eq(lit("a\u{fffd}")), None),
            (col("host").gt(lit("a")), None),
            (odd.eq(lit("x")), Some(("\"odd \\\"name\"=x", true))),
            (
                col("host").in_list(vec![lit("a"), lit("b")], false),
                Some(("host=a OR host=b", true)),
            ),
            (
                col("host").in_list(vec![lit("a"), lit("b")], true),
                Some(("NOT (host=a OR host=b)", false)),
            ),
            (col("host").is_not_null(), Some(("host:*", false))),
            (col("host").is_null(), None),
        ]
    }

    fn text_conditions() -> Vec<(Expr, Option<(&'static str, bool)>)> {
        vec![
            (
                col("message").like(lit("%word%")),
                Some(("_msg:\"word\"", true)),
            ),
            (
                col("message").like(lit("a%b_c")),
                Some(("_msg:\"a\" AND _msg:\"b\" AND _msg:\"c\"", false)),
            ),
            (
                col("message").like(lit("%a_b%")),
                Some(("_msg:\"a\" AND _msg:\"b\"", false)),
            ),
            (
                col("message").like(lit("%50\\%%")),
                Some(("_msg:\"50%\"", true)),
            ),
            (
                col("message").like(lit("word")),
                Some(("_msg:\"word\"", false)),
            ),
            (col("message").like(lit("%")), None),
            (col("host").like(lit("%ul%")), Some(("host:\"ul\"", false))),
            (contains(col("host"), lit("l")), Some(("host:\"l\"", false))),
            (
                col("message").not_like(lit("%a%")),
                Some(("NOT _msg:\"a\"", false)),
            ),
            (col("message").not_like(lit("a%")), None),
            (
                col("message").ilike(lit("%Word%")),
                Some(("_msg:i\"Word\"", false)),
            ),
            (col("message").ilike(lit("%wörd%")), None),
            (contains(col("line"), lit("x")), Some(("_raw:\"x\"", true))),
            (
                starts_with(col("line"), lit("x")),
                Some(("_raw:\"x\"", false)),
            ),
        ]
    }

    fn joined_conditions() -> Vec<(Expr, Option<(&'static str, bool)>)> {
        vec![
            (
                col("host").eq(lit("a")).or(col("status").eq(lit(1i64))),
                Some(("host=a OR status=1", true)),
            ),
            (col("host").eq(lit("a")).or(col("host").is_null()), None),
            (
                not(col("host").eq(lit("a")).or(col("host").eq(lit("b")))),
                Some(("NOT (host=a OR host=b)", false)),
            ),
            (
                col("time").gt(at(0)).or(col("host").eq(lit("a"))),
                Some(("_time>1970-01-01T00:00:00.000000000Z OR host=a", true)),
            ),
            (col("service_name").eq(lit("a")), None),
            (col("unknown").eq(lit("a")), None),
        ]
    }

    #[test]
    fn conditions_become_filters() {
        let layout = layout();
        for (expr, expected) in conditions() {
            let found = push(&expr, &layout);
            let found = found.map(|pushed| (pushed.filter.to_string(), pushed.is_exact));
            let expected = expected.map(|(text, is_exact)| (text.to_owned(), is_exact));
            assert_eq!(found, expected, "{expr}");
        }
    }

    #[test]
    fn conditions_on_the_time_become_ranges() {
        let layout = layout();
        let max = i64::MAX;
        let table = [
            (col("time").gt_eq(at(5)), (5, max)),
            (col("time").gt(at(5)), (6, max)),
            (col("time").lt(at(5)), (i64::MIN, 5)),
            (col("time").lt_eq(at(5)), (i64::MIN, 6)),
            (at(5).gt(col("time")), (i64::MIN, 5)),
            (col("time").eq(at(5)), (5, 6)),
            (col("time").between(at(5), at(9)), (5, 10)),
            (col("time").gt(at(5)).and(col("time").lt(at(9))), (6, 9)),
            (col("time").lt_eq(at(max)), (i64::MIN, max)),
        ];
        for (expr, (from, to)) in table {
            let pushed = push(&expr, &layout).unwrap();
            let range = TimeRange {
                from: Timestamp(from),
                to: Timestamp(to),
            };
            assert_eq!(
                (pushed.filter, pushed.range, pushed.is_exact),
                (Filter::All, range, true),
                "{expr}"
            );
        }
        assert_eq!(push(&col("received").gt(at(5)), &layout), None);
    }
}
