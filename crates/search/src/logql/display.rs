//! The canonical text of a query.

use std::fmt::{self, Write};

use super::ast::{
    BinaryOperation, Conversion, Extraction, Grouping, LabelChoice, LabelFilter, LabelFormat,
    LabelMatcher, LabelReplace, LabelSource, LineChoice, LineFilter, LogQuery, Logfmt, ManySide,
    MatchOperator, Matching, Metric, Operator, Quantity, Query, RangeAggregation, Stage, StageKind,
    Unwrap, VectorAggregation,
};
use super::units::write_duration;

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Query::Log(log) => log.fmt(f),
            Query::Metric(metric) => metric.fmt(f),
        }
    }
}

impl fmt::Display for LogQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        write_list(&self.matchers, ", ", f)?;
        f.write_char('}')?;
        self.stages
            .iter()
            .try_for_each(|stage| write!(f, " {stage}"))
    }
}

impl MatchOperator {
    /// The operator as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            MatchOperator::Equal => "=",
            MatchOperator::NotEqual => "!=",
            MatchOperator::Regex => "=~",
            MatchOperator::NotRegex => "!~",
        }
    }
}

impl fmt::Display for LabelMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, self.operator.as_str())?;
        write_text(&self.value, f)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl fmt::Display for StageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with_text = |name: &str, text: &str, f: &mut fmt::Formatter<'_>| {
            write!(f, "| {name} ")?;
            write_text(text, f)
        };
        match self {
            StageKind::LineFilter(filter) => filter.fmt(f),
            StageKind::Json(extractions) => {
                f.write_str("| json")?;
                write_extractions(extractions, f)
            }
            StageKind::Logfmt(logfmt) => logfmt.fmt(f),
            StageKind::Regexp(text) => with_text("regexp", text, f),
            StageKind::Pattern(text) => with_text("pattern", text, f),
            StageKind::LineFormat(text) => with_text("line_format", text, f),
            StageKind::Unpack => f.write_str("| unpack"),
            StageKind::Decolorize => f.write_str("| decolorize"),
            StageKind::LabelFilter(filter) if filter.begins_like_a_stage() => {
                write!(f, "| ({filter})")
            }
            StageKind::LabelFilter(filter) => write!(f, "| {filter}"),
            StageKind::LabelFormat(formats) => {
                f.write_str("| label_format ")?;
                write_list(formats, ", ", f)
            }
            StageKind::Drop(choices) => {
                f.write_str("| drop ")?;
                write_list(choices, ", ", f)
            }
            StageKind::Keep(choices) => {
                f.write_str("| keep ")?;
                write_list(choices, ", ", f)
            }
        }
    }
}

impl fmt::Display for LineFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.operator.as_str())?;
        write_list(&self.choices, " or ", f)
    }
}

impl fmt::Display for LineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineChoice::Text(text) => write_text(text, f),
            LineChoice::Ip(pattern) => write_ip(pattern, f),
        }
    }
}

impl fmt::Display for Logfmt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("| logfmt")?;
        if self.strict {
            f.write_str(" --strict")?;
        }
        if self.keep_empty {
            f.write_str(" --keep-empty")?;
        }
        write_extractions(&self.extractions, f)
    }
}

fn write_extractions(extractions: &[Extraction], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if !extractions.is_empty() {
        f.write_char(' ')?;
    }
    write_list(extractions, ", ", f)
}

impl fmt::Display for Extraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.label)?;
        write_text(&self.expression, f)
    }
}

impl fmt::Display for LabelFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabelFilter::And(..) | LabelFilter::Or(..) => {
                f.write_char('(')?;
                self.write_chain(f)?;
                f.write_char(')')
            }
            LabelFilter::Text(matcher) => matcher.fmt(f),
            LabelFilter::Ip {
                name,
                is_negated,
                pattern,
            } => {
                write!(f, "{name}{}", if *is_negated { "!=" } else { "=" })?;
                write_ip(pattern, f)
            }
            LabelFilter::Quantity {
                name,
                comparison,
                quantity,
            } => {
                write!(f, "{name}{}", comparison.as_str())?;
                match quantity {
                    Quantity::Number(number) => write!(f, "{number}"),
                    Quantity::Duration(ns) => f.write_str(&write_duration(*ns)),
                    Quantity::Bytes(bytes) => write!(f, "{bytes}B"),
                }
            }
        }
    }
}

impl LabelFilter {
    /// Writes a chain of one operator without parentheses, which queries may not nest deep.
    fn write_chain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, operator, right) = match self {
            LabelFilter::And(left, right) => (left, "and", right),
            LabelFilter::Or(left, right) => (left, "or", right),
            other => return write!(f, "{other}"),
        };
        if std::mem::discriminant(self) == std::mem::discriminant(&**left) {
            left.write_chain(f)?
        } else {
            write!(f, "{left}")?
        }
        write!(f, " {operator} {right}")
    }
}

impl fmt::Display for LabelFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.label)?;
        match &self.from {
            LabelSource::Label(name) => f.write_str(name),
            LabelSource::Template(text) => write_text(text, f),
        }
    }
}

impl fmt::Display for LabelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabelChoice::Name(name) => f.write_str(name),
            LabelChoice::Matcher(matcher) => matcher.fmt(f),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Range(range) => range.fmt(f),
            Metric::Vector(vector) => vector.fmt(f),
            Metric::Binary(binary) => binary.fmt(f),
            Metric::LabelReplace(replace) => replace.fmt(f),
            Metric::Literal(number) => write!(f, "{number}"),
            Metric::VectorLiteral(number) => write!(f, "vector({number})"),
        }
    }
}

impl fmt::Display for RangeAggregation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.function.as_str())?;
        if let Some(parameter) = self.parameter {
            write!(f, "{parameter}, ")?;
        }
        write!(f, "{}", self.log)?;
        if let Some(unwrap) = &self.unwrap {
            write!(f, " {unwrap}")?;
        }
        write!(f, " [{}]", write_duration(self.range_ns))?;
        if self.offset_ns != 0 {
            write!(f, " offset {}", write_duration(self.offset_ns))?;
        }
        f.write_char(')')?;
        write_grouping(self.grouping.as_ref(), f)
    }
}

impl fmt::Display for Unwrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.conversion {
            Conversion::Number => write!(f, "| unwrap {}", self.label)?,
            conversion => write!(f, "| unwrap {}({})", conversion.as_str(), self.label)?,
        }
        self.filters
            .iter()
            .try_for_each(|filter| write!(f, " | {filter}"))
    }
}

impl fmt::Display for VectorAggregation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.function.as_str())?;
        if let Some(parameter) = self.parameter {
            write!(f, "{parameter}, ")?;
        }
        write!(f, "{})", self.of)?;
        write_grouping(self.grouping.as_ref(), f)
    }
}

impl fmt::Display for BinaryOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.left {
            // A chain of one operator is read from the left, and may not nest deep.
            Metric::Binary(left)
                if left.operator == self.operator && self.operator != Operator::Pow =>
            {
                write!(f, "{left}")?;
            }
            left => write_side(left, f)?,
        }
        write!(f, " {}", self.operator.as_str())?;
        if self.is_bool {
            f.write_str(" bool")?;
        }
        self.matching.fmt(f)?;
        f.write_char(' ')?;
        write_side(&self.right, f)
    }
}

fn write_side(side: &Metric, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match side {
        Metric::Binary(binary) => write!(f, "({binary})"),
        other => write!(f, "{other}"),
    }
}

impl fmt::Display for Matching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(labels) = &self.labels else {
            return Ok(());
        };
        f.write_str(if labels.is_on { " on (" } else { " ignoring (" })?;
        write_list(&labels.labels, ", ", f)?;
        f.write_char(')')?;
        match self.many {
            ManySide::Neither => return Ok(()),
            ManySide::Left => f.write_str(" group_left (")?,
            ManySide::Right => f.write_str(" group_right (")?,
        }
        write_list(&self.include, ", ", f)?;
        f.write_char(')')
    }
}

impl fmt::Display for LabelReplace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "label_replace({}", self.of)?;
        for text in [&self.target, &self.replacement, &self.source, &self.regex] {
            f.write_str(", ")?;
            write_text(text, f)?;
        }
        f.write_char(')')
    }
}

fn write_grouping(grouping: Option<&Grouping>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(grouping) = grouping else {
        return Ok(());
    };
    f.write_str(if grouping.is_without {
        " without ("
    } else {
        " by ("
    })?;
    write_list(&grouping.labels, ", ", f)?;
    f.write_char(')')
}

fn write_list<T: fmt::Display>(
    list: &[T],
    between: &str,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for (at, item) in list.iter().enumerate() {
        if at > 0 {
            f.write_str(between)?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

fn write_ip(pattern: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("ip(")?;
    write_text(pattern, f)?;
    f.write_char(')')
}

/// Writes a text with quotes and the escapes that LogQL knows.
fn write_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c.is_ascii_control() => write!(f, "\\x{:02x}", c as u32)?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}
