//! Queries for numbers.

use logpond_record::cast;

use super::super::Span;
use super::super::ast::{
    BinaryOperation, Conversion, Grouping, LabelReplace, LogQuery, ManySide, Matching,
    MatchingLabels, Metric, Operator, RangeAggregation, RangeFunction, Unwrap, VectorAggregation,
    VectorFunction,
};
use super::super::error::ParseError;
use super::super::lexer::Kind;
use super::{Parser, Result};
use crate::nearest;

/// Functions that are neither of ranges nor of vectors.
const OTHER_FUNCTIONS: [&str; 2] = ["vector", "label_replace"];

/// The part of an expression between the lines and the function of their numbers.
struct RangeSelector {
    log: LogQuery,
    unwrap: Option<Unwrap>,
    range_ns: Option<i64>,
    offset_ns: Option<i64>,
}

impl Parser<'_> {
    /// A query for numbers.
    pub(super) fn metric(&mut self) -> Result<Metric> {
        self.binary(0)
    }

    /// Operands and operators that bind at least so tightly.
    fn binary(&mut self, precedence_min: u8) -> Result<Metric> {
        self.descend()?;
        let mut left = self.operand()?;
        while let Some(operator) = self.operator() {
            let precedence = operator.precedence();
            if precedence < precedence_min {
                break;
            }
            self.count_part()?;
            let span = self.span();
            self.advance();
            let is_bool = self.bool_modifier(operator)?;
            let matching = self.matching(operator)?;
            // Powers are taken from the right, all else from the left.
            let right = match operator {
                Operator::Pow => self.binary(precedence)?,
                _ => self.binary(precedence + 1)?,
            };
            self.check_sides(operator, &left, &right, span)?;
            left = Metric::Binary(Box::new(BinaryOperation {
                operator,
                is_bool,
                matching,
                left,
                right,
                span,
            }));
        }
        self.ascend();
        Ok(left)
    }

    fn operator(&self) -> Option<Operator> {
        match self.kind() {
            Kind::Sign(sign) => Operator::of_name(sign),
            Kind::Word(word) => Operator::of_name(word).filter(|operator| operator.is_set()),
            _ => None,
        }
    }

    fn check_sides(
        &self,
        operator: Operator,
        left: &Metric,
        right: &Metric,
        span: Span,
    ) -> Result<()> {
        if !operator.is_set() {
            return Ok(());
        }
        for (side, name) in [(left, "left"), (right, "right")] {
            if let Metric::Literal(number) = side {
                let message = format!(
                    "unexpected literal for {name} leg of logical/set binary operation ({}): \
                     {number}",
                    operator.as_str()
                );
                let hint = format!("write vector({number})");
                return Err(self.error(span, message).suggest(hint));
            }
        }
        Ok(())
    }

    fn bool_modifier(&mut self, operator: Operator) -> Result<bool> {
        if !self.is_word("bool") {
            return Ok(false);
        }
        if operator.comparison().is_none() {
            let message = format!("bool does not go with {}", operator.as_str());
            return Err(self.error_here(message).suggest("it goes with comparisons"));
        }
        self.advance();
        Ok(true)
    }

    fn matching(&mut self, operator: Operator) -> Result<Matching> {
        let mut matching = Matching::default();
        let is_on = self.is_word("on");
        if !(is_on || self.is_word("ignoring")) || !self.is_sign_ahead(1, "(") {
            return Ok(matching);
        }
        self.advance();
        let labels = self.names()?;
        matching.labels = Some(MatchingLabels { is_on, labels });
        matching.many = match () {
            () if self.is_word("group_left") => ManySide::Left,
            () if self.is_word("group_right") => ManySide::Right,
            () => return Ok(matching),
        };
        if operator.is_set() {
            let message = format!("no grouping allowed for {} operation", operator.as_str());
            return Err(self.error_here(message));
        }
        self.advance();
        if self.is_sign("(") && self.are_names_ahead() {
            matching.include = self.names()?;
        }
        Ok(matching)
    }

    /// Whether parentheses hold names, rather than the right side.
    fn are_names_ahead(&self) -> bool {
        let is_list = matches!(self.token(1).kind, Kind::Word(_))
            && (self.is_sign_ahead(2, ",") || self.is_sign_ahead(2, ")"));
        self.is_sign_ahead(1, ")") || is_list
    }

    fn operand(&mut self) -> Result<Metric> {
        match self.kind() {
            Kind::Sign("(") => {
                self.advance();
                let inner = self.metric()?;
                self.expect_sign(")")?;
                Ok(inner)
            }
            Kind::Number(_) | Kind::Sign("+" | "-") => self.literal(),
            Kind::Word(_) => self.function(),
            Kind::Sign("{") => {
                let error = self.error_here("syntax error: unexpected {");
                Err(error.suggest("numbers come of lines by a function, such as rate({…}[5m])"))
            }
            Kind::Text(_) => {
                let error = self.unexpected("a selector or a function");
                Err(error.suggest("lines with a text are {} |= \"text\""))
            }
            Kind::End => {
                let error = self.error_here("syntax error: unexpected $end");
                Err(error.suggest("write a selector such as {app=\"shop\"}"))
            }
            _ => Err(self.unexpected("a selector or a function")),
        }
    }

    fn literal(&mut self) -> Result<Metric> {
        if !matches!(self.kind(), Kind::Number(_)) && matches!(self.token(1).kind, Kind::Word(_)) {
            let error = self.unexpected("NUMBER");
            return Err(error.suggest("write 0 - … or -1 * …"));
        }
        self.expect_number().map(Metric::Literal)
    }

    fn function(&mut self) -> Result<Metric> {
        let span = self.span();
        let Kind::Word(name) = self.advance() else {
            return Err(self.unexpected("IDENTIFIER"));
        };
        if let Some(function) = RangeFunction::of_name(&name) {
            return self.range_aggregation(function, span);
        }
        if let Some(function) = VectorFunction::of_name(&name) {
            return self.vector_aggregation(function, span);
        }
        match &*name.to_ascii_lowercase() {
            "vector" => {
                self.expect_sign("(")?;
                let number = self.expect_number()?;
                self.expect_sign(")")?;
                Ok(Metric::VectorLiteral(number))
            }
            "label_replace" => self.label_replace(span),
            _ => Err(self.unknown_function(&name, span)),
        }
    }

    fn unknown_function(&self, name: &str, span: Span) -> ParseError {
        let error = self.error(
            span,
            format!("syntax error: unexpected IDENTIFIER {name:?}"),
        );
        if !self.is_sign("(") {
            let is_comparison = matches!(self.kind(), Kind::Sign("=" | "=~" | "!=" | "!~"));
            return if is_comparison {
                error.suggest("labels stand in braces: {app=\"shop\"}")
            } else {
                error.suggest("lines with a text are {} |= \"text\"")
            };
        }
        let ranges = RangeFunction::ALL.iter().map(|f| f.as_str());
        let vectors = VectorFunction::ALL.iter().map(|f| f.as_str());
        let known = ranges.chain(vectors).chain(OTHER_FUNCTIONS);
        let known = nearest(name, known).map(|known| format!("did you mean {known}?"));
        error.maybe_suggest(known)
    }

    fn label_replace(&mut self, start: Span) -> Result<Metric> {
        self.expect_sign("(")?;
        let of = self.metric()?;
        let mut texts = Vec::new();
        for _ in 0..4 {
            self.expect_sign(",")?;
            texts.push(self.expect_text()?);
        }
        self.expect_sign(")")?;
        let span = start.to(self.span_before());
        let mut texts = texts.into_iter();
        let mut next = || texts.next().unwrap_or_default();
        let (target, replacement, source, regex) = (next(), next(), next(), next());
        self.check_expression(&regex, span)?;
        if !crate::label::is_label_name(&target) {
            let message = format!("invalid label name in label_replace: {target:?}");
            return Err(self.error(span, message));
        }
        Ok(Metric::LabelReplace(Box::new(LabelReplace {
            of,
            target,
            replacement,
            source,
            regex,
            span,
        })))
    }

    /// `by (a, b)` or `without (a)`, if there is one.
    fn grouping(&mut self) -> Result<Option<Grouping>> {
        let is_without = self.is_word("without");
        if !(is_without || self.is_word("by")) {
            return Ok(None);
        }
        self.advance();
        let labels = self.names()?;
        Ok(Some(Grouping { is_without, labels }))
    }

    fn vector_aggregation(&mut self, function: VectorFunction, start: Span) -> Result<Metric> {
        let before = self.grouping()?;
        self.expect_sign("(")?;
        let parameter = self.parameter(function)?;
        let of_start = self.span();
        let of = self.metric()?;
        if let Metric::Literal(_) = &of {
            let span = of_start.to(self.span_before());
            return Err(self.error(span, "syntax error: unexpected literal, expecting series"));
        }
        if self.is_sign(",") && !function.has_parameter() {
            let message = format!("unsupported parameter for operation {}(", function.as_str());
            return Err(self.error_here(message));
        }
        self.expect_sign(")")?;
        let grouping = match before {
            Some(before) => Some(before),
            None => self.grouping()?,
        };
        let span = start.to(self.span_before());
        let is_sort = matches!(function, VectorFunction::Sort | VectorFunction::SortDesc);
        if grouping.is_some() && (is_sort || function == VectorFunction::ApproxTopk) {
            let message = format!("grouping not allowed for {} aggregation", function.as_str());
            return Err(self.error(span, message));
        }
        Ok(Metric::Vector(Box::new(VectorAggregation {
            function,
            parameter,
            of,
            grouping,
            span,
        })))
    }

    /// How many series `topk` is to give.
    fn parameter(&mut self, function: VectorFunction) -> Result<Option<u64>> {
        let is_number = matches!(self.kind(), Kind::Number(_) | Kind::Sign("-" | "+"))
            && (self.is_sign_ahead(1, ",") || self.is_sign_ahead(2, ","));
        let name = function.as_str();
        if !function.has_parameter() {
            return if is_number {
                let message = format!("unsupported parameter for operation {name}(");
                Err(self.error_here(message))
            } else {
                Ok(None)
            };
        }
        if !is_number {
            let message = format!("parameter required for operation {name}");
            let hint = format!("write how many series are wanted: {name}(10, …)");
            return Err(self.error_here(message).suggest(hint));
        }
        let span = self.span();
        let number = self.expect_number()?;
        self.expect_sign(",")?;
        if number < 1.0 || number.fract() != 0.0 || number > f64::from(u32::MAX) {
            let message = format!("invalid parameter (must be greater than 0) {name}({number}");
            return Err(self.error(span, message));
        }
        Ok(Some(cast::whole_u64(number)))
    }

    fn range_aggregation(&mut self, function: RangeFunction, start: Span) -> Result<Metric> {
        if matches!(self.kind(), Kind::Word(_)) {
            let error = self.unexpected("(");
            return Err(error.suggest("the labels stand behind: …([5m])) by (…)"));
        }
        self.expect_sign("(")?;
        let mut parameter = None;
        if matches!(self.kind(), Kind::Number(_) | Kind::Sign("-" | "+")) {
            if function != RangeFunction::QuantileOverTime {
                let message = format!(
                    "parameter not supported for operation {}",
                    function.as_str()
                );
                return Err(self.error_here(message));
            }
            parameter = Some(self.expect_number()?);
            self.expect_sign(",")?;
        }
        if function == RangeFunction::QuantileOverTime && parameter.is_none() {
            let message = "parameter required for operation quantile_over_time";
            return Err(self
                .error_here(message)
                .suggest("quantile_over_time(0.99, …)"));
        }
        let ranged = self.ranged()?;
        self.expect_sign(")")?;
        let grouping = self.grouping()?;
        let span = start.to(self.span_before());
        let Some(range_ns) = ranged.range_ns else {
            let error = self.error(span, "syntax error: a range is missing, expecting RANGE");
            return Err(error.suggest("write one behind the lines, such as [5m]"));
        };
        let aggregation = RangeAggregation {
            function,
            parameter,
            log: ranged.log,
            unwrap: ranged.unwrap,
            range_ns,
            offset_ns: ranged.offset_ns.unwrap_or(0),
            grouping,
            span,
        };
        self.check_range(&aggregation)?;
        Ok(Metric::Range(Box::new(aggregation)))
    }

    /// Lines with a range, which may stand in several places.
    fn ranged(&mut self) -> Result<RangeSelector> {
        let mut ranged = if self.is_sign("(") {
            self.descend()?;
            self.advance();
            let ranged = self.ranged()?;
            self.expect_sign(")")?;
            self.ascend();
            ranged
        } else {
            if !self.is_sign("{") {
                let error = self.unexpected("{ or (");
                return Err(error.suggest("begin with a selector such as {app=\"shop\"}"));
            }
            RangeSelector {
                log: LogQuery {
                    matchers: self.matchers()?,
                    stages: Vec::new(),
                },
                unwrap: None,
                range_ns: None,
                offset_ns: None,
            }
        };
        self.range_and_offset(&mut ranged)?;
        if ranged.unwrap.is_none() {
            ranged.log.stages.extend(self.stages()?);
            ranged.unwrap = self.unwrap()?;
        }
        self.range_and_offset(&mut ranged)?;
        Ok(ranged)
    }

    fn range_and_offset(&mut self, ranged: &mut RangeSelector) -> Result<()> {
        if let Kind::Range(range_ns) = *self.kind() {
            if ranged.range_ns.is_some() {
                return Err(self.error_here("syntax error: unexpected RANGE"));
            }
            self.advance();
            ranged.range_ns = Some(range_ns);
        }
        if !self.is_word("offset") {
            return Ok(());
        }
        if ranged.range_ns.is_none() || ranged.offset_ns.is_some() {
            let error = self.error_here("syntax error: unexpected offset");
            return Err(error.suggest("the offset stands behind the range: [5m] offset 1h"));
        }
        self.advance();
        let is_negative = self.take_sign("-");
        let Kind::Duration(offset) = *self.kind() else {
            return Err(self.unexpected("DURATION"));
        };
        self.advance();
        ranged.offset_ns = Some(if is_negative { -offset } else { offset });
        Ok(())
    }

    /// `| unwrap duration(x) | x > 5`
    fn unwrap(&mut self) -> Result<Option<Unwrap>> {
        if !self.is_sign("|") {
            return Ok(None);
        }
        self.advance();
        self.advance();
        let span = self.span();
        let word = self.expect_word()?;
        let (label, conversion) = if self.take_sign("(") {
            let named = Conversion::NAMED.iter().copied();
            let known = named
                .clone()
                .find(|c| c.as_str().eq_ignore_ascii_case(&word));
            let Some(conversion) = known else {
                let names = named.map(Conversion::as_str);
                let hint = nearest(&word, names).map(|name| format!("did you mean {name}?"));
                let message = format!("syntax error: {word} is no conversion of unwrap");
                return Err(self.error(span, message).maybe_suggest(hint));
            };
            let label = self.expect_word()?;
            self.expect_sign(")")?;
            (label, conversion)
        } else {
            (word, Conversion::Number)
        };
        let mut filters = Vec::new();
        while self.take_sign("|") {
            self.count_part()?;
            filters.push(self.label_filter()?);
        }
        Ok(Some(Unwrap {
            label,
            conversion,
            filters,
        }))
    }

    /// Checks what goes with what.
    fn check_range(&self, range: &RangeAggregation) -> Result<()> {
        use RangeFunction as F;
        let name = range.function.as_str();
        let fail = |message: String, hint: &str| Err(self.error(range.span, message).suggest(hint));
        match (range.function, &range.unwrap) {
            (F::CountOverTime | F::BytesOverTime | F::BytesRate, Some(_)) => {
                return fail(
                    format!("invalid aggregation {name} with unwrap"),
                    "it counts lines: take the unwrap away, or use sum_over_time",
                );
            }
            (
                F::CountOverTime | F::BytesOverTime | F::BytesRate | F::Rate | F::AbsentOverTime,
                _,
            )
            | (_, Some(_)) => {}
            (_, None) => {
                return fail(
                    format!("invalid aggregation {name} without unwrap"),
                    "say which label's number is meant: | unwrap LABEL",
                );
            }
        }
        let may_group = matches!(
            range.function,
            F::AvgOverTime
                | F::MaxOverTime
                | F::MinOverTime
                | F::StddevOverTime
                | F::StdvarOverTime
                | F::QuantileOverTime
                | F::FirstOverTime
                | F::LastOverTime
        );
        if range.grouping.is_some() && !may_group {
            return fail(
                format!("grouping not allowed for {name} aggregation"),
                "put a vector aggregation around it, such as sum by (…) (…)",
            );
        }
        Ok(())
    }
}
