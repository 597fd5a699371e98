//! Who is told of alerts.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The most receivers; each has a thread.
const RECEIVERS_MAX: usize = 16;

/// In which form somebody is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverForm {
    /// The API of an Alertmanager, below its address.
    Alertmanager,
    /// What an Alertmanager itself sends to a webhook.
    Webhook,
}

impl ReceiverForm {
    /// The name in metrics and errors.
    pub fn as_str(self) -> &'static str {
        match self {
            ReceiverForm::Alertmanager => "alertmanager",
            ReceiverForm::Webhook => "webhook",
        }
    }
}

/// Somebody who is told of alerts. What is shown of it is without secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Receiver {
    /// In which form.
    pub form: ReceiverForm,
    url: String,
    authorization: Option<String>,
}

impl Receiver {
    /// Reads an address, `http://` or `https://`, also with `USER:PASSWORD@`.
    ///
    /// # Errors
    /// What is expected, in words without the address.
    pub fn parse(form: ReceiverForm, text: &str) -> Result<Receiver, String> {
        let expected = || "expected http://HOST:PORT/PATH or https://HOST/PATH".to_owned();
        let (scheme, rest) = text.trim().split_once("://").ok_or_else(expected)?;
        if !matches!(scheme, "http" | "https") || rest.contains(char::is_whitespace) {
            return Err(expected());
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let path = match form {
            ReceiverForm::Alertmanager if path.contains('?') => return Err(expected()),
            ReceiverForm::Alertmanager => format!("{}/api/v2/alerts", path.trim_end_matches('/')),
            ReceiverForm::Webhook => path.to_owned(),
        };
        let url = format!("{scheme}://{host}{path}");
        let uri = url.parse::<ureq::http::Uri>().map_err(|_| expected())?;
        if uri.host().is_none_or(str::is_empty) {
            return Err(expected());
        }
        let encoded = user.map(|user| STANDARD.encode(decoded(user)));
        Ok(Receiver {
            form,
            url,
            authorization: encoded.map(|user| format!("Basic {user}")),
        })
    }

    /// Reads addresses, a line each, or `off`.
    ///
    /// # Errors
    /// As for [`Receiver::parse`].
    pub fn parse_all(form: ReceiverForm, text: &str) -> Result<Vec<Receiver>, String> {
        if text == "off" {
            return Ok(Vec::new());
        }
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let all: Result<Vec<_>, String> = lines.map(|line| Receiver::parse(form, line)).collect();
        match all? {
            all if all.len() > RECEIVERS_MAX => Err(format!("at most {RECEIVERS_MAX} can be told")),
            all => Ok(all),
        }
    }

    /// The whole address, for requests only.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The value of the header that says who asks.
    pub fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }

    /// Whether connections to it are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.url.starts_with("https:")
    }
}

/// Scheme, host and port: what is behind them may be a secret.
impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.url.split_once("://").unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        write!(f, "{} {scheme}://{}", self.form.as_str(), &rest[..end])
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `%NN` as the byte that it stands for.
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3);
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_secrets_are_not_shown() {
        use ReceiverForm::{Alertmanager, Webhook};
        let table = [
            (
                Alertmanager,
                "http://a:9093",
                "http://a:9093/api/v2/alerts",
                None,
            ),
            (
                Alertmanager,
                "https://a/am/",
                "https://a/am/api/v2/alerts",
                None,
            ),
            (
                Webhook,
                "https://u:p%40ss@hooks.example.org/s/SECRET?k=SECRET",
                "https://hooks.example.org/s/SECRET?k=SECRET",
                Some("Basic dTpwQHNz"),
            ),
            (Webhook, "http://[::1]:80/x", "http://[::1]:80/x", None),
        ];
        for (form, text, url, authorization) in table {
            let receiver = Receiver::parse(form, text).unwrap();
            assert_eq!(receiver.url(), url);
            assert_eq!(receiver.authorization(), authorization);
            for shown in [receiver.to_string(), format!("{receiver:?}")] {
                assert!(
                    !shown.contains("SECRET") && !shown.contains("ss@"),
                    "{shown}"
                );
            }
        }
        for bad in [
            "",
            "a:9093",
            "ftp://a",
            "http://",
            "http:///x",
            "http://a b/",
            "http://u@/x",
        ] {
            let error = Receiver::parse(Webhook, bad).unwrap_err();
            assert_eq!(error, "expected http://HOST:PORT/PATH or https://HOST/PATH");
        }
        assert!(Receiver::parse(Alertmanager, "http://a/?x=1").is_err());
        let two = Receiver::parse_all(Webhook, "http://a/\nhttp://b/\n").unwrap();
        assert_eq!(two[1].to_string(), "webhook http://b");
        assert!(Receiver::parse_all(Webhook, "off").unwrap().is_empty());
    }
}
