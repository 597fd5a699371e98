//! Functions of texts that tools call and the engine has not.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringArray, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use datafusion::prelude::SessionContext;

use super::functions::quoted;

/// The longest text that a format makes.
const FORMATTED_BYTES_MAX: usize = 64 << 10;

/// A function of texts.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextFunction {
    kind: TextFunctionKind,
    signature: Signature,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum TextFunctionKind {
    /// `format('%s %I %L', …)`.
    Format,
    /// The parts of a name with a schema.
    ParseIdent,
}

/// Registers the functions.
pub(super) fn register(context: &SessionContext) {
    for kind in [TextFunctionKind::Format, TextFunctionKind::ParseIdent] {
        let any = vec![TypeSignature::VariadicAny];
        context.register_udf(ScalarUDF::from(TextFunction {
            kind,
            signature: Signature::one_of(any, Volatility::Immutable),
        }));
    }
}

impl ScalarUDFImpl for TextFunction {
    fn name(&self) -> &str {
        match self.kind {
            TextFunctionKind::Format => "format",
            TextFunctionKind::ParseIdent => "parse_ident",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.kind {
            TextFunctionKind::Format => DataType::Utf8,
            TextFunctionKind::ParseIdent => {
                DataType::List(Arc::new(Field::new("item", DataType::Utf8, true)))
            }
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let all = &arguments.args;
        let are_scalars = all
            .iter()
            .all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if are_scalars {
            1
        } else {
            arguments.number_rows
        };
        let texts = all.iter().map(|arg| {
            let texts = cast(&arg.to_array(rows)?, &DataType::Utf8)?;
            Ok(texts.as_string::<i32>().clone())
        });
        let texts = texts.collect::<Result<Vec<StringArray>>>()?;
        let Some((first, others)) = texts.split_first() else {
            return exec_err!("{} needs an argument", self.name());
        };
        let result: ArrayRef = match self.kind {
            TextFunctionKind::Format => {
                let mut shown = StringBuilder::new();
                for row in 0..rows {
                    if first.is_null(row) {
                        shown.append_null();
                        continue;
                    }
                    let value = |at: usize| {
                        let array = others.get(at)?;
                        (!array.is_null(row)).then(|| array.value(row))
                    };
                    shown.append_value(formatted(first.value(row), value, others.len())?);
                }
                Arc::new(shown.finish())
            }
            TextFunctionKind::ParseIdent => {
                let mut lists = ListBuilder::new(StringBuilder::new());
                for name in first {
                    if let Some(name) = name {
                        lists.append_value(parts(name).into_iter().map(Some));
                    } else {
                        lists.append_null();
                    }
                }
                Arc::new(lists.finish())
            }
        };
        if are_scalars {
            let value = ScalarValue::try_from_array(&result, 0)?;
            return Ok(ColumnarValue::Scalar(value));
        }
        Ok(ColumnarValue::Array(result))
    }
}

/// A text by a format: `%s` is a text, `%I` a name, `%L` a constant, `%%` a percent sign.
fn formatted<'v>(
    format: &str,
    value: impl Fn(usize) -> Option<&'v str>,
    count: usize,
) -> Result<String> {
    let (mut shown, mut next) = (String::new(), 0);
    let mut chars = format.chars();
    while let Some(char) = chars.next() {
        if char != '%' {
            shown.push(char);
            continue;
        }
        let kind = chars.next();
        if kind == Some('%') {
            shown.push('%');
            continue;
        }
        if next >= count {
            return exec_err!("format: there are fewer values than the format has");
        }
        let found = value(next);
        next += 1;
        match (kind, found) {
            (Some('s'), found) => shown.push_str(found.unwrap_or_default()),
            (Some('I'), Some(name)) => shown.push_str(&quoted(name)),
            (Some('L'), Some(text)) => {
                shown.push_str(&format!("'{}'", text.replace('\'', "''")));
            }
            (Some('L'), None) => shown.push_str("NULL"),
            _ => {
                return exec_err!(
                    "format: there are %s, %I, %L and %%, in the order of the values"
                );
            }
        }
        if shown.len() > FORMATTED_BYTES_MAX {
            return exec_err!("format: the text is longer than {FORMATTED_BYTES_MAX} bytes");
        }
    }
    Ok(shown)
}

/// The parts of a name: those in double quotes as they are, others in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut is_quoted = false;
    for char in name.chars() {
        match (char, parts.last_mut()) {
            ('"', _) => is_quoted = !is_quoted,
            ('.', _) if !is_quoted => parts.push(String::new()),
            (char, Some(part)) if is_quoted => part.push(char),
            (char, Some(part)) => part.extend(char.to_lowercase()),
            (_, None) => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_formatted() {
        let values = ["a", "B c", "d'e"];
        let shown = |format: &str| formatted(format, |at| values.get(at).copied(), 3).ok();
        for (format, expected) in [
            ("%s-%I-%L", Some("a-\"B c\"-'d''e'")),
            ("100%%", Some("100%")),
            ("%s%s%s%s", None),
            ("%d", None),
            ("%", None),
        ] {
            assert_eq!(shown(format).as_deref(), expected, "{format}");
        }
        assert_eq!(formatted("%L", |_| None, 1).unwrap(), "NULL");
    }

    #[test]
    fn names_have_parts() {
        for (name, expected) in [
            ("Public.logs", vec!["public", "logs"]),
            ("\"A.b\".c", vec!["A.b", "c"]),
        ] {
            assert_eq!(parts(name), expected);
        }
    }
}
