//! `SIMILAR TO`: patterns of SQL as regular expressions.
//!
//! The engine takes such a pattern as a regular expression as it is, and finds it anywhere in a text; in SQL
//! it means the whole text, `%` and `_` are as in `LIKE`, and `.`, `^` and `$` are themselves.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};

/// Makes regular expressions of the patterns.
#[derive(Debug)]
pub(crate) struct SimilarTo;

impl FunctionRewrite for SimilarTo {
    fn name(&self) -> &'static str {
        "similar_to"
    }

    fn rewrite(&self, expr: Expr, _: &DFSchema, _: &ConfigOptions) -> Result<Transformed<Expr>> {
        let Expr::SimilarTo(like) = expr else {
            return Ok(Transformed::no(expr));
        };
        let Expr::Literal(ScalarValue::Utf8(Some(pattern)), _) = &*like.pattern else {
            return plan_err!("the pattern of SIMILAR TO is a constant: for others there is ~");
        };
        let pattern = lit(regex_of(pattern, like.escape_char.unwrap_or('\\')));
        let op = if like.negated {
            Operator::RegexNotMatch
        } else {
            Operator::RegexMatch
        };
        Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr {
            left: like.expr,
            op,
            right: Box::new(pattern),
        })))
    }
}

fn regex_of(pattern: &str, escape: char) -> String {
    let mut regex = String::from("^(?s:");
    let mut is_in_brackets = false;
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        match char {
            char if char == escape => push_literal(&mut regex, chars.next().unwrap_or(escape)),
            ']' => {
                is_in_brackets = false;
                regex.push(']');
            }
            // What has a meaning in brackets of regular expressions, and none in those of SQL.
            '[' | '&' | '~' if is_in_brackets => push_literal(&mut regex, char),
            char if is_in_brackets => regex.push(char),
            '[' => {
                is_in_brackets = true;
                regex.push('[');
            }
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '.' | '^' | '$' | '\\' | '#' => push_literal(&mut regex, char),
            char => regex.push(char),
        }
    }
    regex.push_str(")$");
    regex
}

fn push_literal(regex: &mut String, char: char) {
    if char.is_ascii_punctuation() {
        regex.push('\\');
    }
    regex.push(char);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_regular_expressions() {
        let table = [
            ("a%", "^(?s:a.*)$"),
            ("a.c", "^(?s:a\\.c)$"),
            ("(a|b)_+", "^(?s:(a|b).+)$"),
            ("[a-c_%.]*", "^(?s:[a-c_%.]*)$"),
            ("[^a]{2}", "^(?s:[^a]{2})$"),
            ("100\\%", "^(?s:100\\%)$"),
            ("a\\", "^(?s:a\\\\)$"),
        ];
        for (pattern, expected) in table {
            assert_eq!(regex_of(pattern, '\\'), expected, "{pattern}");
        }
    }
}
