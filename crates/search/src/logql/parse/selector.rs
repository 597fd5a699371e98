//! Selectors: `{app="shop", env!="dev", path=~"/api/.*"}`.

use super::super::MATCHERS_MAX;
use super::super::ast::{LabelMatcher, LogQuery, MatchOperator};
use super::super::go_regex::translate;
use super::super::lexer::Kind;
use super::{Parser, Result};
use crate::pattern::check_expression;

impl Parser<'_> {
    /// A query for lines, in parentheses perhaps.
    pub(super) fn log_query(&mut self) -> Result<LogQuery> {
        if self.is_sign("(") {
            self.descend()?;
            self.advance();
            let mut log = self.log_query()?;
            self.expect_sign(")")?;
            self.ascend();
            log.stages.extend(self.stages()?);
            return Ok(log);
        }
        Ok(LogQuery {
            matchers: self.matchers()?,
            stages: self.stages()?,
        })
    }

    /// Matchers in braces.
    pub(super) fn matchers(&mut self) -> Result<Vec<LabelMatcher>> {
        self.expect_sign("{")?;
        let mut matchers = Vec::new();
        if self.take_sign("}") {
            return Ok(matchers);
        }
        loop {
            if matchers.len() == MATCHERS_MAX {
                let message = format!("a selector has more than {MATCHERS_MAX} matchers");
                return Err(self.error_here(message));
            }
            matchers.push(self.matcher()?);
            if self.take_sign("}") {
                return Ok(matchers);
            }
            if !self.take_sign(",") {
                return Err(self.unexpected("} or ,"));
            }
            if self.is_sign("}") {
                let error = self.unexpected("IDENTIFIER");
                return Err(error.suggest("take the last comma away"));
            }
        }
    }

    fn matcher(&mut self) -> Result<LabelMatcher> {
        let start = self.span();
        if let Kind::Text(name) = self.kind() {
            let label = crate::label::sanitised(name).into_owned();
            let error = self.unexpected("IDENTIFIER");
            return Err(error.suggest(format!("labels stand without quotes: {label}")));
        }
        let name = self.expect_word()?;
        let Some(operator) = self.match_operator() else {
            let error = self.unexpected("= or != or =~ or !~");
            return Err(match self.kind() {
                Kind::Sign("==") => error.suggest("did you mean = ?"),
                Kind::Sign("." | "-") => {
                    error.suggest("write _ for every other character of a field's name")
                }
                _ => error,
            });
        };
        self.advance();
        let value = self.expect_text()?;
        let span = start.to(self.span_before());
        let matcher = LabelMatcher {
            name,
            operator,
            value,
            span,
        };
        self.check_regex(&matcher)?;
        Ok(matcher)
    }

    /// The operator at hand, if it is one that compares text.
    pub(super) fn match_operator(&self) -> Option<MatchOperator> {
        Some(match self.kind() {
            Kind::Sign("=") => MatchOperator::Equal,
            Kind::Sign("!=") => MatchOperator::NotEqual,
            Kind::Sign("=~") => MatchOperator::Regex,
            Kind::Sign("!~") => MatchOperator::NotRegex,
            _ => return None,
        })
    }

    /// Checks that the expression of a matcher compiles.
    pub(super) fn check_regex(&self, matcher: &LabelMatcher) -> Result<()> {
        let is_regex = matches!(
            matcher.operator,
            MatchOperator::Regex | MatchOperator::NotRegex
        );
        if is_regex {
            self.check_expression(&matcher.value, matcher.span)
        } else {
            Ok(())
        }
    }

    pub(super) fn check_expression(&self, expression: &str, span: super::Span) -> Result<()> {
        let translated = translate(expression);
        let checked = translated.and_then(|translated| check_expression(&translated.source));
        checked.map_err(|error| {
            let error = self.error(span, format!("error parsing regexp: {}", error.message));
            error.suggest("write a backslash before characters that are meant as they are")
        })
    }
}
