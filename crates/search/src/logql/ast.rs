//! A query as a tree.

use super::Span;
use crate::number::Number;

/// A query.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// It asks for lines.
    Log(LogQuery),
    /// It asks for numbers.
    Metric(Metric),
}

/// Lines of some streams, and what is done with each.
#[derive(Clone, Debug, PartialEq)]
pub struct LogQuery {
    /// Which streams; all of these must hold. None are all streams.
    pub matchers: Vec<LabelMatcher>,
    /// What is done with each line, in order.
    pub stages: Vec<Stage>,
}

/// A condition on the text of a label. A label that is not there has the empty text.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelMatcher {
    /// The label.
    pub name: Box<str>,
    /// How it is compared.
    pub operator: MatchOperator,
    /// With what: a text, or a regular expression that must match all of the label's.
    pub value: Box<str>,
    /// Where it stands.
    pub span: Span,
}

/// How a label's text is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchOperator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Regex,
    /// `!~`
    NotRegex,
}

/// One step of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// What it does.
    pub kind: StageKind,
    /// Where it stands.
    pub span: Span,
}

/// Stages that need no more than their word: `!=` and `!~` behind it filter lines, rather than compare a
/// label of this name.
pub(super) const STAGES_ALONE: [&str; 4] = ["json", "logfmt", "unpack", "decolorize"];

/// What a step of a pipeline does.
#[derive(Clone, Debug, PartialEq)]
pub enum StageKind {
    /// Lets lines through by their text.
    LineFilter(LineFilter),
    /// Makes labels of a JSON object; of these paths only, if there are any.
    Json(Vec<Extraction>),
    /// Makes labels of `key=value` pairs.
    Logfmt(Logfmt),
    /// Makes labels of the named groups of a regular expression.
    Regexp(Box<str>),
    /// Makes labels of the named captures of a pattern.
    Pattern(Box<str>),
    /// Makes labels of what Promtail's stage `pack` made, and takes its line out.
    Unpack,
    /// Lets lines through by their labels.
    LabelFilter(LabelFilter),
    /// Makes another line by a template.
    LineFormat(Box<str>),
    /// Makes other labels.
    LabelFormat(Vec<LabelFormat>),
    /// Takes out what sets a terminal's colour.
    Decolorize,
    /// Takes labels away.
    Drop(Vec<LabelChoice>),
    /// Takes all other labels away.
    Keep(Vec<LabelChoice>),
}

impl StageKind {
    /// Whether lines may have other labels behind it.
    pub fn makes_labels(&self) -> bool {
        matches!(
            self,
            StageKind::Json(_)
                | StageKind::Logfmt(_)
                | StageKind::Regexp(_)
                | StageKind::Pattern(_)
                | StageKind::Unpack
                | StageKind::LabelFormat(_)
        )
    }
}

/// A condition on a line's text.
#[derive(Clone, Debug, PartialEq)]
pub struct LineFilter {
    /// How it is compared.
    pub operator: LineOperator,
    /// With what; one of these is enough, or none may be for the operators that negate.
    pub choices: Vec<LineChoice>,
}

/// How a line is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineOperator {
    /// `|=`: it holds the text.
    Contains,
    /// `!=`
    NotContains,
    /// `|~`: the regular expression matches somewhere.
    Matches,
    /// `!~`
    NotMatches,
    /// `|>`: it is like the pattern.
    Like,
    /// `!>`
    NotLike,
}

impl LineOperator {
    /// The operator as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            LineOperator::Contains => "|=",
            LineOperator::NotContains => "!=",
            LineOperator::Matches => "|~",
            LineOperator::NotMatches => "!~",
            LineOperator::Like => "|>",
            LineOperator::NotLike => "!>",
        }
    }

    /// Whether lines are let through that are not like this.
    pub fn is_negated(self) -> bool {
        matches!(
            self,
            LineOperator::NotContains | LineOperator::NotMatches | LineOperator::NotLike
        )
    }
}

/// What a line is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum LineChoice {
    /// A text, a regular expression or a pattern, as the operator says.
    Text(Box<str>),
    /// An address that the line holds: one, a range, or a network.
    Ip(Box<str>),
}

/// A label and where its value is found.
#[derive(Clone, Debug, PartialEq)]
pub struct Extraction {
    /// The label.
    pub label: Box<str>,
    /// A path into JSON, or a key of logfmt.
    pub expression: Box<str>,
}

/// How `key=value` pairs are read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logfmt {
    /// Whether a line that is no logfmt is an error, rather than read as far as it is.
    pub strict: bool,
    /// Whether keys without a value become labels.
    pub keep_empty: bool,
    /// The pairs that are wanted; all if there are none.
    pub extractions: Vec<Extraction>,
}

/// A condition on labels.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelFilter {
    /// Both hold.
    And(Box<LabelFilter>, Box<LabelFilter>),
    /// At least one holds.
    Or(Box<LabelFilter>, Box<LabelFilter>),
    /// The label's text.
    Text(LabelMatcher),
    /// The label is an address, or is none of these.
    Ip {
        /// The label.
        name: Box<str>,
        /// Whether it must not be one.
        is_negated: bool,
        /// One address, a range, or a network.
        pattern: Box<str>,
    },
    /// The label as a quantity.
    Quantity {
        /// The label.
        name: Box<str>,
        /// How it is compared.
        comparison: Comparison,
        /// With what; the label is read in the same way.
        quantity: Quantity,
    },
}

impl LabelFilter {
    /// Whether it would be read as a stage and a line filter if it stood behind `|` by itself.
    pub(super) fn begins_like_a_stage(&self) -> bool {
        let (name, is_negated) = match self {
            LabelFilter::And(..) | LabelFilter::Or(..) => return false,
            LabelFilter::Text(matcher) => {
                let negated = [MatchOperator::NotEqual, MatchOperator::NotRegex];
                (&matcher.name, negated.contains(&matcher.operator))
            }
            LabelFilter::Ip {
                name, is_negated, ..
            } => (name, *is_negated),
            LabelFilter::Quantity {
                name, comparison, ..
            } => (name, *comparison == Comparison::NotEqual),
        };
        let mut alone = STAGES_ALONE.iter();
        is_negated && alone.any(|stage| name.eq_ignore_ascii_case(stage))
    }
}

/// What a label is compared with as a quantity.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A number, exactly as it was written: identifiers have more digits than floats have.
    Number(Number),
    /// Nanoseconds.
    Duration(i64),
    /// Bytes.
    Bytes(u64),
}

/// How numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
}

impl Comparison {
    /// The operator as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
        }
    }

    /// Whether two numbers compare like this; no number is like one that is none (NaN).
    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
        }
    }
}

/// A label and what it becomes.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelFormat {
    /// The label.
    pub label: Box<str>,
    /// What it becomes.
    pub from: LabelSource,
}

/// What a label becomes.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelSource {
    /// The value of this label, which is taken away.
    Label(Box<str>),
    /// What this template gives.
    Template(Box<str>),
}

/// A label that is dropped or kept.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelChoice {
    /// Whatever its value.
    Name(Box<str>),
    /// If its value is like this.
    Matcher(LabelMatcher),
}

/// A query for numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Metric {
    /// Of lines.
    Range(Box<RangeAggregation>),
    /// Of several series.
    Vector(Box<VectorAggregation>),
    /// Of two.
    Binary(Box<BinaryOperation>),
    /// The same with another label.
    LabelReplace(Box<LabelReplace>),
    /// A number.
    Literal(f64),
    /// One series without labels.
    VectorLiteral(f64),
}

/// A number of the lines before an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeAggregation {
    /// Which one.
    pub function: RangeFunction,
    /// The quantile of `quantile_over_time`.
    pub parameter: Option<f64>,
    /// Of which lines.
    pub log: LogQuery,
    /// Of which label's number; else of the lines themselves.
    pub unwrap: Option<Unwrap>,
    /// How far back from the instant, in nanoseconds. Invariant: above zero.
    pub range_ns: i64,
    /// How long before the instant the range ends, in nanoseconds; negative ones are after it.
    pub offset_ns: i64,
    /// By which labels.
    pub grouping: Option<Grouping>,
    /// Where it stands.
    pub span: Span,
}

/// The label whose number is taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Unwrap {
    /// The label.
    pub label: Box<str>,
    /// How its text is read.
    pub conversion: Conversion,
    /// Conditions on labels, among them on whether the number could be read.
    pub filters: Vec<LabelFilter>,
}

/// How a label's text is read as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// A number.
    Number,
    /// An amount of bytes.
    Bytes,
    /// A duration, in seconds.
    Duration,
    /// The same.
    DurationSeconds,
}

impl Conversion {
    /// All that have a name.
    pub const NAMED: [Conversion; 3] = [
        Conversion::Bytes,
        Conversion::Duration,
        Conversion::DurationSeconds,
    ];

    /// The name; none for numbers.
    pub fn as_str(self) -> &'static str {
        match self {
            Conversion::Number => "",
            Conversion::Bytes => "bytes",
            Conversion::Duration => "duration",
            Conversion::DurationSeconds => "duration_seconds",
        }
    }
}

macro_rules! functions {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$each])* $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// The name in queries.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// The one of this name, upper and lower case alike.
            pub fn of_name(name: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|f| f.as_str().eq_ignore_ascii_case(name))
            }
        }
    };
}

functions! {
    /// What is computed of the lines of a range.
    RangeFunction {
        /// How many lines.
        CountOverTime = "count_over_time",
        /// Lines per second, or the numbers' sum per second.
        Rate = "rate",
        /// Increase per second of a number that only grows, but for restarts.
        RateCounter = "rate_counter",
        /// How many bytes.
        BytesOverTime = "bytes_over_time",
        /// Bytes per second.
        BytesRate = "bytes_rate",
        /// The mean of the numbers.
        AvgOverTime = "avg_over_time",
        /// Their sum.
        SumOverTime = "sum_over_time",
        /// The smallest one.
        MinOverTime = "min_over_time",
        /// The largest one.
        MaxOverTime = "max_over_time",
        /// Their population variance.
        StdvarOverTime = "stdvar_over_time",
        /// Their population standard deviation.
        StddevOverTime = "stddev_over_time",
        /// A quantile of them.
        QuantileOverTime = "quantile_over_time",
        /// The first one.
        FirstOverTime = "first_over_time",
        /// The last one.
        LastOverTime = "last_over_time",
        /// 1 if there are no lines.
        AbsentOverTime = "absent_over_time",
    }
}

functions! {
    /// What is computed of several series at an instant.
    VectorFunction {
        /// Their sum.
        Sum = "sum",
        /// Their mean.
        Avg = "avg",
        /// The smallest one.
        Min = "min",
        /// The largest one.
        Max = "max",
        /// How many.
        Count = "count",
        /// The population standard deviation.
        Stddev = "stddev",
        /// The population variance.
        Stdvar = "stdvar",
        /// The largest ones.
        Topk = "topk",
        /// The smallest ones.
        Bottomk = "bottomk",
        /// The largest ones, where an estimate would do.
        ApproxTopk = "approx_topk",
        /// All of them, the smallest first.
        Sort = "sort",
        /// All of them, the largest first.
        SortDesc = "sort_desc",
    }
}

impl VectorFunction {
    /// Whether it says how many series it wants.
    pub fn has_parameter(self) -> bool {
        matches!(
            self,
            VectorFunction::Topk | VectorFunction::Bottomk | VectorFunction::ApproxTopk
        )
    }
}

/// By which labels series are put together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grouping {
    /// Whether these are the labels that are left out.
    pub is_without: bool,
    /// The labels.
    pub labels: Vec<Box<str>>,
}

impl Grouping {
    /// Whether it puts all series together.
    pub fn is_of_all(&self) -> bool {
        self.labels.is_empty() && !self.is_without
    }
}

/// A number of several series.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorAggregation {
    /// Which one.
    pub function: VectorFunction,
    /// How many series are wanted.
    pub parameter: Option<u64>,
    /// Of which series.
    pub of: Metric,
    /// By which labels.
    pub grouping: Option<Grouping>,
    /// Where it stands.
    pub span: Span,
}

functions! {
    /// What is done with two sides.
    Operator {
        /// Those of both, the left ones first.
        Or = "or",
        /// The left ones that the right has, too.
        And = "and",
        /// The left ones that the right has not.
        Unless = "unless",
        /// The sum.
        Add = "+",
        /// The difference.
        Sub = "-",
        /// The product.
        Mul = "*",
        /// The quotient; nothing (NaN) where the right is zero.
        Div = "/",
        /// The remainder; nothing (NaN) where the right is zero.
        Mod = "%",
        /// The power.
        Pow = "^",
        /// Equal ones.
        Equal = "==",
        /// Unequal ones.
        NotEqual = "!=",
        /// Larger ones.
        Greater = ">",
        /// Those that are not smaller.
        GreaterOrEqual = ">=",
        /// Smaller ones.
        Less = "<",
        /// Those that are not larger.
        LessOrEqual = "<=",
    }
}

impl Operator {
    /// How tightly it binds.
    pub fn precedence(self) -> u8 {
        match self {
            Operator::Or => 1,
            Operator::And | Operator::Unless => 2,
            Operator::Add | Operator::Sub => 4,
            Operator::Mul | Operator::Div | Operator::Mod => 5,
            Operator::Pow => 6,
            _ => 3,
        }
    }

    /// Whether it is about which series there are, not about their values.
    pub fn is_set(self) -> bool {
        self.precedence() <= 2
    }

    /// The comparison that it is.
    pub fn comparison(self) -> Option<Comparison> {
        Some(match self {
            Operator::Equal => Comparison::Equal,
            Operator::NotEqual => Comparison::NotEqual,
            Operator::Greater => Comparison::Greater,
            Operator::GreaterOrEqual => Comparison::GreaterOrEqual,
            Operator::Less => Comparison::Less,
            Operator::LessOrEqual => Comparison::LessOrEqual,
            _ => return None,
        })
    }
}

/// Two sides and what is done with them.
#[derive(Clone, Debug, PartialEq)]
pub struct BinaryOperation {
    /// What is done.
    pub operator: Operator,
    /// Whether a comparison gives 0 and 1 rather than leaving series out.
    pub is_bool: bool,
    /// Which series of both sides belong together.
    pub matching: Matching,
    /// The left side.
    pub left: Metric,
    /// The right side.
    pub right: Metric,
    /// Where the operator stands.
    pub span: Span,
}

/// Which series of two sides belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matching {
    /// By which labels; all without.
    pub labels: Option<MatchingLabels>,
    /// Which side may have several for one of the other.
    pub many: ManySide,
    /// Labels of the other side that the result gets.
    pub include: Vec<Box<str>>,
}

/// The labels that series have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchingLabels {
    /// Whether these are the only ones that count, or the ones that do not.
    pub is_on: bool,
    /// The labels.
    pub labels: Vec<Box<str>>,
}

/// The side that may have several series for one of the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ManySide {
    /// None.
    #[default]
    Neither,
    /// `group_left`
    Left,
    /// `group_right`
    Right,
}

/// A label made of another one by a regular expression.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelReplace {
    /// Of which series.
    pub of: Metric,
    /// The label that is made.
    pub target: Box<str>,
    /// Its value, with `$1` for the expression's groups.
    pub replacement: Box<str>,
    /// The label that is read.
    pub source: Box<str>,
    /// The expression that must match all of it.
    pub regex: Box<str>,
    /// Where it stands.
    pub span: Span,
}
