//! Addresses of servers.

use std::fmt;

use super::{ClientError, Parameters};

/// What an address without a port ends with.
const PORT_DEFAULT: &str = ":7650";

/// The base URL of a server, without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    base: String,
}

impl Address {
    /// Reads `http://HOST:PORT[/PREFIX]`, the same with `https`, `HOST:PORT`, `HOST` or `:PORT`.
    pub fn parse(text: &str) -> Result<Address, ClientError> {
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
        // In an IPv6 address without brackets a colon begins no port.
        let has_port = authority.rsplit_once(':').is_some_and(|(host, port)| {
            is_port(port) && (host.ends_with(']') || !host.contains(':'))
        });
        let mut authority = authority.to_string();
        if authority.starts_with(':') {
            authority.insert_str(0, "127.0.0.1");
        }
        if !has_port {
            authority.push_str(PORT_DEFAULT);
        }
        let base = format!("{scheme}://{authority}{prefix}");
        match base.parse::<ureq::http::Uri>() {
            Ok(uri) if uri.host().is_some_and(|host| !host.is_empty()) && uri.query().is_none() => {
                Ok(Address { base })
            }
            _ => Err(refuse("expected http://HOST:PORT")),
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
        let Address { base } = Address::parse(text)?;
        let authority = base.strip_prefix("http://").unwrap_or(&base);
        if authority.contains('/') {
            return Err(refuse("expected HOST:PORT"));
        }
        let is_default = !text.trim().ends_with(PORT_DEFAULT);
        Ok(HostPort(match authority.strip_suffix(PORT_DEFAULT) {
            Some(host) if is_default => format!("{host}:{port}"),
            _ => authority.to_string(),
        }))
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

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
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
