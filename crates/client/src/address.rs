//! Addresses of servers.

use std::fmt;

use super::{ClientError, Parameters};

/// The port of an address of HTTP that names none.
const PORT_DEFAULT: u16 = 7650;

/// The base URL of a server, without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    base: String,
}

impl Address {
    /// Reads `http://HOST:PORT[/PREFIX]`, the same with `https`, `HOST:PORT`, `HOST` or `:PORT`.
    pub fn parse(text: &str) -> Result<Address, ClientError> {
        Address::parse_with_port(text, PORT_DEFAULT)
    }

    /// The same, of a server with another default port.
    pub fn parse_with_port(text: &str, port: u16) -> Result<Address, ClientError> {
        let refuse = |reason| ClientError::Address {
            text: text.to_string(),
            reason,
        };
        let (scheme, rest) = match text.trim().split_once("://") {
            Some(("http", rest)) => ("http", rest),
            Some(("https", rest)) => ("https", rest),
            Some(_) => return Err(refuse("expected http://HOST:PORT or https://HOST:PORT")),
            None => ("http", text.trim()),
        };
        let rest = rest.trim_end_matches('/');
        let (authority, prefix) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let authority = with_port(authority, port);
        let base = format!("{scheme}://{authority}{prefix}");
        if is_base(&base) {
            Ok(Address { base })
        } else {
            Err(refuse("expected http://HOST:PORT"))
        }
    }

    /// Whether connections to it are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.base.starts_with("https:")
    }

    /// The URL of a path below the address.
    pub fn url(&self, path: &str, parameters: &Parameters) -> String {
        let mut url = format!("{}{path}", self.base);
        for (at, (name, value)) in parameters.iter().enumerate() {
            url.push(if at == 0 { '?' } else { '&' });
            url.push_str(name);
            url.push('=');
            encode(value.as_bytes(), &mut url);
        }
        url
    }
}

/// A host and a port of a listener that does not speak HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort(String);

impl HostPort {
    /// Reads `HOST:PORT`, `HOST` or `:PORT`; without a host it is this machine.
    pub fn parse(text: &str, port: u16) -> Result<HostPort, ClientError> {
        let refuse = |reason| ClientError::Address {
            text: text.to_string(),
            reason,
        };
        if text.contains("://") {
            return Err(refuse(
                "expected HOST:PORT of a listener for uploads, which does not speak HTTP",
            ));
        }
        let authority = with_port(text.trim(), port);
        if !authority.contains('/') && is_base(&format!("http://{authority}")) {
            Ok(HostPort(authority))
        } else {
            Err(refuse("expected HOST:PORT"))
        }
    }

    /// As a resolver takes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

/// `HOST:PORT` of what may lack either: without a host it is this machine.
fn with_port(authority: &str, port: u16) -> String {
    // In an IPv6 address without brackets a colon begins no port.
    let has_port = authority.rsplit_once(':').is_some_and(|(host, port)| {
        port.parse::<u16>().is_ok() && (host.ends_with(']') || !host.contains(':'))
    });
    let host = if authority.starts_with(':') {
        "127.0.0.1"
    } else {
        ""
    };
    if has_port {
        format!("{host}{authority}")
    } else {
        format!("{host}{authority}:{port}")
    }
}

/// Whether paths can be put below it.
fn is_base(url: &str) -> bool {
    url.parse::<ureq::http::Uri>()
        .is_ok_and(|uri| uri.host().is_some_and(|host| !host.is_empty()) && uri.query().is_none())
}

/// Appends bytes with everything but RFC 3986's unreserved characters as `%NN`.
pub fn encode(bytes: &[u8], out: &mut String) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}
