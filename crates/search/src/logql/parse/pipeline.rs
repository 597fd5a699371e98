//! Stages: what stands behind a selector.

use super::super::ast::{
    Comparison, Extraction, LabelChoice, LabelFilter, LabelFormat, LabelMatcher, LabelSource,
    LineChoice, LineFilter, LineOperator, Logfmt, MatchOperator, Quantity, STAGES_ALONE, Stage,
    StageKind,
};
use super::super::error::ParseError;
use super::super::lexer::Kind;
use super::super::units::negated;
use super::{Parser, Result};
use crate::{nearest, pipeline};

/// Words that stages begin with.
const STAGES: [&str; 12] = [
    "json",
    "logfmt",
    "regexp",
    "pattern",
    "unpack",
    "line_format",
    "label_format",
    "decolorize",
    "drop",
    "keep",
    "unwrap",
    "distinct",
];

fn line_operator(kind: &Kind) -> Option<LineOperator> {
    Some(match kind {
        Kind::Sign("|=") => LineOperator::Contains,
        Kind::Sign("!=") => LineOperator::NotContains,
        Kind::Sign("|~") => LineOperator::Matches,
        Kind::Sign("!~") => LineOperator::NotMatches,
        Kind::Sign("|>") => LineOperator::Like,
        Kind::Sign("!>") => LineOperator::NotLike,
        _ => return None,
    })
}

impl Parser<'_> {
    /// All stages that follow, up to `unwrap`.
    pub(super) fn stages(&mut self) -> Result<Vec<Stage>> {
        let mut stages = Vec::new();
        loop {
            let start = self.span();
            let kind = match (line_operator(self.kind()), self.is_sign("|")) {
                (Some(operator), _) => StageKind::LineFilter(self.line_filter(operator)?),
                (None, true) if !self.is_unwrap_ahead() => {
                    self.advance();
                    self.piped()?
                }
                _ => return Ok(stages),
            };
            self.count_part()?;
            let span = start.to(self.span_before());
            self.check_stage(&kind, span)?;
            stages.push(Stage { kind, span });
        }
    }

    pub(super) fn is_unwrap_ahead(&self) -> bool {
        let word = &self.token(1).kind;
        matches!(word, Kind::Word(word) if word.eq_ignore_ascii_case("unwrap"))
            && matches!(self.token(2).kind, Kind::Word(_))
    }

    fn line_filter(&mut self, operator: LineOperator) -> Result<LineFilter> {
        self.advance();
        let mut choices = vec![self.line_choice(operator)?];
        while self.is_word("or")
            && (matches!(self.token(1).kind, Kind::Text(_)) || self.is_ip_ahead(1))
        {
            self.advance();
            self.count_part()?;
            choices.push(self.line_choice(operator)?);
        }
        if self.is_word("or")
            && let Some(repeated) = line_operator(&self.token(1).kind)
        {
            let repeated = repeated.as_str();
            let message = format!("syntax error: unexpected {repeated}, expecting STRING or ip");
            let error = self.error(self.token(1).span, message);
            let operator = operator.as_str();
            return Err(error.suggest(format!("write {operator} \"…\" or \"…\"")));
        }
        Ok(LineFilter { operator, choices })
    }

    fn is_ip_ahead(&self, ahead: usize) -> bool {
        matches!(&self.token(ahead).kind, Kind::Word(word) if word.eq_ignore_ascii_case("ip"))
            && self.is_sign_ahead(ahead + 1, "(")
    }

    fn line_choice(&mut self, operator: LineOperator) -> Result<LineChoice> {
        if !self.is_ip_ahead(0) {
            return self.expect_text().map(LineChoice::Text);
        }
        if !matches!(operator, LineOperator::Contains | LineOperator::NotContains) {
            let message = format!("ip: invalid operation {}", operator.as_str());
            return Err(self.error_here(message).suggest("ip() goes with |= and !="));
        }
        Ok(LineChoice::Ip(self.ip()?))
    }

    /// `ip("10.0.0.0/8")`
    fn ip(&mut self) -> Result<Box<str>> {
        self.advance();
        self.expect_sign("(")?;
        let span = self.span();
        let pattern = self.expect_text()?;
        self.expect_sign(")")?;
        pipeline::ip::Addresses::parse(&pattern).map_err(|message| {
            let error = self.error(span, message);
            error.suggest("write one address, a range (a-b), or a network (10.0.0.0/8)")
        })?;
        Ok(pattern)
    }

    /// What follows `|`.
    fn piped(&mut self) -> Result<StageKind> {
        let word = match self.kind() {
            Kind::Word(word) if !self.is_comparison_ahead(1) || self.is_stage_and_line_filter() => {
                word.to_ascii_lowercase()
            }
            _ => return self.label_filter().map(StageKind::LabelFilter),
        };
        Ok(match word.as_str() {
            "json" => {
                self.advance();
                StageKind::Json(self.extractions()?)
            }
            "logfmt" => {
                self.advance();
                self.logfmt()?
            }
            "regexp" | "pattern" | "line_format" => {
                self.advance();
                let text = self.expect_text()?;
                match word.as_str() {
                    "regexp" => StageKind::Regexp(text),
                    "pattern" => StageKind::Pattern(text),
                    _ => StageKind::LineFormat(text),
                }
            }
            "unpack" => {
                self.advance();
                StageKind::Unpack
            }
            "decolorize" => {
                self.advance();
                StageKind::Decolorize
            }
            "label_format" => {
                self.advance();
                self.label_format()?
            }
            "drop" | "keep" => {
                self.advance();
                let choices = self.label_choices()?;
                match word.as_str() {
                    "drop" => StageKind::Drop(choices),
                    _ => StageKind::Keep(choices),
                }
            }
            _ if self.is_ip_ahead(0) => return Err(self.misplaced_ip()),
            "distinct" => {
                let error = self.error_here("syntax error: there is no stage distinct");
                return Err(
                    error.suggest("values are told by sum by (LABEL) (count_over_time(…[5m]))")
                );
            }
            _ => return Err(self.unknown_stage(&word)),
        })
    }

    fn misplaced_ip(&self) -> ParseError {
        let error = self.error_here("syntax error: unexpected ip");
        error.suggest("write LABEL = ip(\"…\"), LABEL != ip(\"…\"), or |= ip(\"…\")")
    }

    fn unknown_stage(&mut self, word: &str) -> ParseError {
        let here = self.span();
        self.advance();
        let found = self.kind().describe();
        let message = format!(
            "syntax error: unexpected {found} behind {word}, expecting a comparison of a label"
        );
        let known = nearest(word, STAGES).map(|stage| format!("did you mean {stage}?"));
        self.error(here.to(self.span()), message)
            .maybe_suggest(known)
    }

    /// Whether a stage that needs no more than its word stands before `!=` or `!~`: these filter lines
    /// then, as Loki reads it.
    fn is_stage_and_line_filter(&self) -> bool {
        let mut alone = STAGES_ALONE.iter();
        let Kind::Word(word) = self.kind() else {
            return false;
        };
        let is_alone = alone.any(|stage| word.eq_ignore_ascii_case(stage));
        is_alone && (self.is_sign_ahead(1, "!=") || self.is_sign_ahead(1, "!~"))
    }

    /// Whether the token so far ahead compares a label.
    fn is_comparison_ahead(&self, ahead: usize) -> bool {
        matches!(
            self.token(ahead).kind,
            Kind::Sign("=" | "==" | "!=" | "=~" | "!~" | ">" | ">=" | "<" | "<=")
        )
    }

    fn logfmt(&mut self) -> Result<StageKind> {
        let mut logfmt = Logfmt::default();
        while let Kind::Flag(flag) = self.kind() {
            match &**flag {
                "strict" => logfmt.strict = true,
                "keep-empty" => logfmt.keep_empty = true,
                other => {
                    let known = nearest(other, ["strict", "keep-empty"]);
                    let hint = known.map(|flag| format!("did you mean --{flag}?"));
                    let message = format!("syntax error: unexpected flag --{other}");
                    return Err(self.error_here(message).maybe_suggest(hint));
                }
            }
            self.advance();
        }
        logfmt.extractions = self.extractions()?;
        Ok(StageKind::Logfmt(logfmt))
    }

    /// `a="x.y", b`; none perhaps.
    fn extractions(&mut self) -> Result<Vec<Extraction>> {
        let mut extractions = Vec::new();
        if !matches!(self.kind(), Kind::Word(_)) || self.is_word("or") || self.is_word("and") {
            return Ok(extractions);
        }
        loop {
            let label = self.expect_word()?;
            let expression = if self.take_sign("=") {
                self.expect_text()?
            } else {
                label.clone()
            };
            extractions.push(Extraction { label, expression });
            if !self.take_sign(",") {
                return Ok(extractions);
            }
            self.count_part()?;
        }
    }

    fn label_format(&mut self) -> Result<StageKind> {
        let mut formats: Vec<LabelFormat> = Vec::new();
        loop {
            let span = self.span();
            let label = self.expect_word()?;
            self.expect_sign("=")?;
            let from = match self.kind() {
                Kind::Text(_) => LabelSource::Template(self.expect_text()?),
                Kind::Word(_) => LabelSource::Label(self.expect_word()?),
                _ => return Err(self.unexpected("STRING or IDENTIFIER")),
            };
            if formats.iter().any(|format| format.label == label) {
                let message =
                    format!("multiple label name '{label}' not allowed in a label_format");
                let hint = "write a second label_format behind the first";
                return Err(self.error(span, message).suggest(hint));
            }
            if &*label == "__error__" {
                let message = "__error__ cannot be formatted";
                return Err(self.error(span, message));
            }
            formats.push(LabelFormat { label, from });
            if !self.take_sign(",") {
                return Ok(StageKind::LabelFormat(formats));
            }
            self.count_part()?;
        }
    }

    fn label_choices(&mut self) -> Result<Vec<LabelChoice>> {
        let mut choices = Vec::new();
        loop {
            let span = self.span();
            let name = self.expect_word()?;
            choices.push(match self.match_operator() {
                None => LabelChoice::Name(name),
                Some(operator) => {
                    self.advance();
                    LabelChoice::Matcher(self.matcher_of(name, operator, span)?)
                }
            });
            if !self.take_sign(",") {
                return Ok(choices);
            }
            self.count_part()?;
        }
    }

    fn matcher_of(
        &mut self,
        name: Box<str>,
        operator: MatchOperator,
        start: super::Span,
    ) -> Result<LabelMatcher> {
        let value = self.expect_text()?;
        let matcher = LabelMatcher {
            name,
            operator,
            value,
            span: start.to(self.span_before()),
        };
        self.check_regex(&matcher)?;
        Ok(matcher)
    }

    /// Conditions on labels: `or` binds loosest, then `and` and standing side by side. What stands
    /// behind a comma belongs together, as Loki reads it.
    pub(super) fn label_filter(&mut self) -> Result<LabelFilter> {
        let mut left = self.label_conjunction()?;
        while self.is_word("or") {
            self.advance();
            self.count_part()?;
            let right = self.label_conjunction()?;
            left = LabelFilter::Or(Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn label_conjunction(&mut self) -> Result<LabelFilter> {
        let mut left = self.label_condition()?;
        loop {
            if self.take_sign(",") {
                self.count_part()?;
                self.descend()?;
                let right = self.label_filter()?;
                self.ascend();
                return Ok(LabelFilter::And(Box::new(left), Box::new(right)));
            }
            let is_beside = match self.kind() {
                Kind::Word(_) => !self.is_word("or") && self.is_comparison_ahead(1),
                _ => self.is_sign("("),
            };
            if !self.take_word("and") && !is_beside {
                return Ok(left);
            }
            self.count_part()?;
            let right = self.label_condition()?;
            left = LabelFilter::And(Box::new(left), Box::new(right));
        }
    }

    fn label_condition(&mut self) -> Result<LabelFilter> {
        if self.is_sign("(") {
            self.descend()?;
            self.advance();
            let inner = self.label_filter()?;
            self.expect_sign(")")?;
            self.ascend();
            return Ok(inner);
        }
        let start = self.span();
        let name = self.expect_word()?;
        let comparison = match self.kind() {
            Kind::Sign("=" | "==") => Comparison::Equal,
            Kind::Sign("!=") => Comparison::NotEqual,
            Kind::Sign(">") => Comparison::Greater,
            Kind::Sign(">=") => Comparison::GreaterOrEqual,
            Kind::Sign("<") => Comparison::Less,
            Kind::Sign("<=") => Comparison::LessOrEqual,
            Kind::Sign("=~" | "!~") => {
                let operator = self.match_operator().unwrap_or(MatchOperator::Regex);
                self.advance();
                if self.is_ip_ahead(0) {
                    return Err(self.misplaced_ip());
                }
                return self
                    .matcher_of(name, operator, start)
                    .map(LabelFilter::Text);
            }
            _ => return Err(self.unexpected("= or != or =~ or !~ or > or >= or < or <=")),
        };
        let operator = self.match_operator();
        self.advance();
        if let (Some(operator), Kind::Text(_)) = (operator, self.kind()) {
            return self
                .matcher_of(name, operator, start)
                .map(LabelFilter::Text);
        }
        if operator.is_some() && self.is_ip_ahead(0) {
            let is_negated = operator == Some(MatchOperator::NotEqual);
            let pattern = self.ip()?;
            return Ok(LabelFilter::Ip {
                name,
                is_negated,
                pattern,
            });
        }
        if self.is_ip_ahead(0) {
            return Err(self.misplaced_ip());
        }
        let quantity = self.quantity(operator.is_some())?;
        Ok(LabelFilter::Quantity {
            name,
            comparison,
            quantity,
        })
    }

    fn quantity(&mut self, may_be_text: bool) -> Result<Quantity> {
        let is_negative = self.take_sign("-");
        let _ = !is_negative && self.take_sign("+");
        let number = match self.kind() {
            Kind::Number(number) if is_negative => negated(number),
            Kind::Number(number) => Some(number.clone()),
            _ => None,
        };
        let quantity = match (self.kind(), number) {
            (_, Some(number)) => Quantity::Number(number),
            (Kind::Duration(duration), _) if is_negative => Quantity::Duration(-duration),
            (Kind::Duration(duration), _) => Quantity::Duration(*duration),
            (Kind::Bytes(bytes), _) if !is_negative => Quantity::Bytes(*bytes),
            _ => {
                let expected = if may_be_text {
                    "STRING or NUMBER or DURATION or BYTES"
                } else {
                    "NUMBER or DURATION or BYTES"
                };
                let hint = match self.kind() {
                    Kind::Word(word) => {
                        Some(format!("did you forget the quotes? write \"{word}\""))
                    }
                    Kind::Text(_) => Some("texts have no order: leave the quotes away".to_owned()),
                    _ => None,
                };
                return Err(self.unexpected(expected).maybe_suggest(hint));
            }
        };
        self.advance();
        Ok(quantity)
    }

    /// Compiles what a stage says, so that it is known to run.
    fn check_stage(&self, kind: &StageKind, span: super::Span) -> Result<()> {
        pipeline::check(kind).map_err(|message| self.error(span, message))
    }
}
