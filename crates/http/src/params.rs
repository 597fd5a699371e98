//! Parameters of a request: the query string, and the form or JSON object in a POST body.

use hyper::Uri;
use logpond_record::cast;

use super::error::ApiError;

/// Parameters of one request. A name asked for twice by mistake is an error, not a guess.
pub(super) const PARAMETERS_MAX: usize = 256;

/// Decoded names and values in the order given.
#[derive(Debug, Default)]
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    /// Those in an address.
    pub(super) fn of(address: &Uri) -> Result<Params, ApiError> {
        let mut params = Params::default();
        params.read(address.query().unwrap_or_default().as_bytes())?;
        Ok(params)
    }

    /// Reads `a=b&c=d`, percent-encoded, `+` for space, and adds it to what is there.
    pub(super) fn read(&mut self, encoded: &[u8]) -> Result<(), ApiError> {
        for pair in encoded.split(|b| *b == b'&').filter(|p| !p.is_empty()) {
            if self.0.len() >= PARAMETERS_MAX {
                let message = format!("more than {PARAMETERS_MAX} parameters");
                return Err(ApiError::bad_request(message));
            }
            let equals = pair.iter().position(|b| *b == b'=');
            let (name, value) = match equals {
                Some(at) => (&pair[..at], &pair[at + 1..]),
                None => (pair, &b""[..]),
            };
            self.0.push((decode(name)?, decode(value)?));
        }
        Ok(())
    }

    /// Reads the members of a JSON object: texts, numbers and truth values, or lists of them for
    /// a parameter that is given several times.
    pub(super) fn read_json(&mut self, text: &[u8]) -> Result<(), ApiError> {
        use serde_json::Value;
        let object: serde_json::Map<String, Value> = serde_json::from_slice(text)
            .map_err(|e| ApiError::bad_request(format!("the body is no JSON object: {e}")))?;
        for (name, value) in object {
            let values = match value {
                Value::Array(values) => values,
                value => vec![value],
            };
            if self.0.len() + values.len() > PARAMETERS_MAX {
                let message = format!("more than {PARAMETERS_MAX} parameters");
                return Err(ApiError::bad_request(message));
            }
            for value in values {
                let text = match value {
                    Value::String(text) => text,
                    Value::Number(number) => number.to_string(),
                    Value::Bool(flag) => flag.to_string(),
                    Value::Null => continue,
                    Value::Array(_) | Value::Object(_) => {
                        let message = format!("parameter '{name}' is neither text nor a number");
                        return Err(ApiError::bad_request(message));
                    }
                };
                self.0.push((name.clone(), text));
            }
        }
        Ok(())
    }

    /// Adds a parameter.
    pub(super) fn push(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        if self.0.len() >= PARAMETERS_MAX {
            let message = format!("more than {PARAMETERS_MAX} parameters");
            return Err(ApiError::bad_request(message));
        }
        self.0.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Fails if there is a name that is not among `known`.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), ApiError> {
        match self
            .0
            .iter()
            .find(|(name, _)| !known.contains(&name.as_str()))
        {
            None => Ok(()),
            Some((name, _)) => Err(ApiError::bad_request(format!(
                "unknown parameter '{name}'; known here: {}",
                known.join(", ")
            ))),
        }
    }

    /// The value of a parameter that is given at most once.
    pub(super) fn one(&self, name: &str) -> Result<Option<&str>, ApiError> {
        let mut values = self.all(name);
        let first = values.next();
        match values.next() {
            None => Ok(first),
            Some(_) => Err(ApiError::bad_request(format!(
                "parameter '{name}' is given twice"
            ))),
        }
    }

    /// Takes a parameter out; of one that is given several times the last value counts.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let mut taken = None;
        self.0.retain_mut(|(given, value)| {
            let is_it = given == name;
            if is_it {
                taken = Some(std::mem::take(value));
            }
            !is_it
        });
        taken
    }

    /// All values of a parameter.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    /// All names and values.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// `true` or `false`, or the default where the parameter is not given.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, ApiError> {
        match self.one(name)? {
            None => Ok(default),
            Some("true" | "1" | "") => Ok(true),
            Some("false" | "0") => Ok(false),
            Some(other) => Err(ApiError::bad_request(format!(
                "parameter '{name}' is true or false, not '{other}'"
            ))),
        }
    }

    /// A whole number up to `max`, or the default where the parameter is not given.
    pub(super) fn number(&self, name: &str, default: u64, max: u64) -> Result<u64, ApiError> {
        let Some(text) = self.one(name)? else {
            return Ok(default);
        };
        match text.parse() {
            Ok(number) if number <= max => Ok(number),
            _ => Err(ApiError::bad_request(format!(
                "parameter '{name}' is a whole number from 0 to {max}, not '{text}'"
            ))),
        }
    }
}

/// A name in a path, decoded.
pub(super) fn of_path(name: &str) -> Result<String, ApiError> {
    // There a plus is itself.
    decode(name.replace('+', "%2B").as_bytes())
}

fn decode(encoded: &[u8]) -> Result<String, ApiError> {
    let mut out = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => out.push(b' '),
            b'%' => match (digit(after.first()), digit(after.get(1))) {
                (Some(high), Some(low)) => {
                    out.push(high << 4 | low);
                    rest = &after[2..];
                }
                // A lone percent sign is taken for itself, as browsers do.
                _ => out.push(b'%'),
            },
            other => out.push(other),
        }
    }
    String::from_utf8(out).map_err(|_| ApiError::bad_request("a parameter is not UTF-8 text"))
}

fn digit(byte: Option<&u8>) -> Option<u8> {
    char::from(*byte?).to_digit(16).map(cast::low_u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &str) -> Params {
        let mut params = Params::default();
        params.read(text.as_bytes()).unwrap();
        params
    }

    #[test]
    fn json_is_read_as_a_form_is() {
        let mut p = Params::default();
        p.read_json(br#"{"q":"a b","limit":5,"count":true,"label":["x=y","z"],"to":null}"#)
            .unwrap();
        assert_eq!(p.one("q").unwrap(), Some("a b"));
        assert_eq!(p.number("limit", 0, 10).unwrap(), 5);
        assert!(p.flag("count", false).unwrap() && p.all("label").eq(["x=y", "z"]));
        assert_eq!(p.one("to").unwrap(), None);
        for bad in ["[1]", "{\"q\":{}}", "x"] {
            assert!(Params::default().read_json(bad.as_bytes()).is_err());
        }
    }

    #[test]
    fn forms_are_decoded() {
        let p = params("q=a+b%20%22c%22&&label=x%3Dy&label=z&flag&n=7&pct=5%zz");
        assert_eq!(p.one("q").unwrap(), Some("a b \"c\""));
        assert!(p.all("label").eq(["x=y", "z"]));
        assert!(p.flag("flag", false).unwrap() && p.flag("other", true).unwrap());
        assert_eq!(p.number("n", 1, 10).unwrap(), 7);
        assert_eq!(p.one("pct").unwrap(), Some("5%zz"));
        assert!(p.one("label").is_err() && p.number("q", 1, 10).is_err());
        assert!(
            p.only(&["q"])
                .unwrap_err()
                .message
                .contains("known here: q")
        );
        assert!(Params::default().read(b"a=%ff").is_err());
    }
}
