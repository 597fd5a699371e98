//! The names under which a server that asks for no token may be asked.
//!
//! A page of any site may have its name resolve to this machine after it was loaded (DNS rebinding): to
//! the browser the server is then a part of that site, and `Origin` and `Sec-Fetch-Site` say so. What
//! gives it away is the name, which a page cannot forge: `Host`, or `:authority` in HTTP/2. An address
//! or a name of this machine is nothing that a stranger has a page at.

use std::net::{IpAddr, Ipv6Addr};

use hyper::header::HOST;
use hyper::{HeaderMap, Request, Uri};

use super::error::{ApiError, Kind};
use logpond_settings::HostName;

/// The name that every machine calls itself by.
const LOCALHOST: &str = "localhost";

/// How much of a name is shown.
const SHOWN_CHARACTERS_MAX: usize = 100;

/// Where more names are allowed.
#[derive(Clone, Copy, Debug)]
enum Setting {
    /// A flag, with its dashes.
    Flag(&'static str),
    /// Nowhere: only programs of ours ask here.
    None,
}

/// The names that a server answers to, beside addresses and `localhost`.
#[derive(Clone, Debug)]
pub struct Hosts {
    names: Vec<HostName>,
    setting: Setting,
}

impl Hosts {
    /// The names of this machine, and those that are configured by `flag`.
    pub fn new(own: Vec<HostName>, configured: &[HostName], flag: &'static str) -> Hosts {
        let mut names = own;
        names.extend_from_slice(configured);
        Hosts {
            names,
            setting: Setting::Flag(flag),
        }
    }

    /// Addresses and `localhost` only.
    pub fn addresses() -> Hosts {
        Hosts {
            names: Vec::new(),
            setting: Setting::None,
        }
    }

    /// Refuses a request for a name that is none of these. A request that names nobody is no browser's.
    ///
    /// # Errors
    /// With the name, and what to set.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), ApiError> {
        self.check_head(request.uri(), request.headers())
    }

    fn check_head(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        let of_uri = uri
            .authority()
            .map(|authority| authority.as_str().as_bytes());
        let of_headers = headers
            .get_all(HOST)
            .into_iter()
            .map(|host| host.as_bytes());
        let mut given = of_uri.into_iter().chain(of_headers);
        match given.find(|host| !host.is_empty() && !self.knows(host)) {
            None => Ok(()),
            Some(host) => Err(self.refuse(host)),
        }
    }

    fn knows(&self, authority: &[u8]) -> bool {
        match std::str::from_utf8(authority).ok().and_then(Host::parse) {
            None => false,
            Some(Host::Address) => true,
            Some(Host::Name(name)) => {
                name == LOCALHOST || self.names.iter().any(|own| own.includes(&name))
            }
        }
    }

    fn refuse(&self, authority: &[u8]) -> ApiError {
        let shown = String::from_utf8_lossy(authority);
        let shown: String = shown.chars().take(SHOWN_CHARACTERS_MAX).collect();
        let message = format!(
            "this server does not know itself as {shown:?}: as long as it asks for no token it answers \
             to IP addresses, localhost and its own names, so that no page of another site can pass \
             for it"
        );
        let mut error = ApiError::new(Kind::ForeignHost, message);
        let name = std::str::from_utf8(authority).ok().and_then(Host::parse);
        error.hint = match (self.setting, name) {
            (Setting::Flag(flag), Some(Host::Name(name))) => {
                Some(format!("if the name is yours, allow it: {flag} {name}"))
            }
            (Setting::Flag(flag), _) => Some(format!("allow names by {flag} NAME")),
            (Setting::None, _) => None,
        };
        error
    }
}

/// Whom a request is for.
#[derive(Debug, PartialEq, Eq)]
enum Host {
    /// An IP address.
    Address,
    /// A name, in lower case, without a dot at its end.
    Name(String),
}

impl Host {
    /// Reads `NAME`, `IPV4` or `[IPV6]`, each perhaps with `:PORT`.
    fn parse(authority: &str) -> Option<Host> {
        let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(rest) = authority.strip_prefix('[') {
            let (address, port) = rest.split_once(']')?;
            if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
                return None;
            }
            // The zone says by which interface (RFC 6874).
            let address = address
                .split_once('%')
                .map_or(address, |(address, _)| address);
            return address.parse::<Ipv6Addr>().ok().map(|_| Host::Address);
        }
        let (name, port) = authority.split_once(':').unwrap_or((authority, ""));
        if !is_port(port) {
            return None;
        }
        if name.parse::<IpAddr>().is_ok() {
            return Some(Host::Address);
        }
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        match HostName::parse(&name) {
            Ok(HostName::Exact(_)) => Some(Host::Name(name)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Hosts {
        let own = vec![HostName::Exact("ash".into())];
        let configured = [HostName::Below("example.org".into())];
        Hosts::new(own, &configured, "--http-host")
    }

    #[test]
    fn addresses_and_own_names_are_answered() {
        let table = [
            ("127.0.0.1", true),
            ("127.0.0.1:7650", true),
            ("192.0.2.7:80", true),
            ("[::1]:7650", true),
            ("[::1]", true),
            ("[fe80::1%25eth0]:7650", true),
            ("localhost", true),
            ("LocalHost.:7650", true),
            ("ash:7650", true),
            ("ASH", true),
            ("logs.example.org:443", true),
            ("", true),
            ("evil.example", false),
            ("evil.example:7650", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example:7650", false),
            ("ash.evil.example", false),
            ("example.org.evil.example", false),
            ("evil.example:127.0.0.1", false),
            ("evil.example@127.0.0.1", false),
            ("127.0.0.1@evil.example", false),
            ("127.0.0.1:7650@evil.example", false),
            ("[::1].evil.example", false),
            ("[::1]evil", false),
            ("[evil.example]:7650", false),
            ("127.0.0.1 evil.example", false),
            ("*", false),
            ("*.example.org", false),
            (":7650", false),
        ];
        for (host, is_known) in table {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            let checked = hosts().check_head(&Uri::from_static("/"), &headers);
            assert_eq!(checked.is_ok(), is_known, "{host}");
            let Ok(uri) = format!("http://{host}/").parse::<Uri>() else {
                continue;
            };
            let checked = hosts().check_head(&uri, &HeaderMap::new());
            assert_eq!(checked.is_ok(), is_known, "in the address: {host}");
        }
    }

    #[test]
    fn each_of_several_names_counts() {
        let mut headers = HeaderMap::new();
        headers.append(HOST, "127.0.0.1".parse().unwrap());
        headers.append(HOST, "evil.example".parse().unwrap());
        let refused = hosts().check_head(&Uri::from_static("/"), &headers);
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind, Kind::ForeignHost);
        assert!(refused.hint.unwrap().ends_with("--http-host evil.example"));
        headers.remove(HOST);
        let absolute = Uri::from_static("http://evil.example/");
        assert!(hosts().check_head(&absolute, &headers).is_err());
        assert!(hosts().check_head(&Uri::from_static("/"), &headers).is_ok());
        let any = Hosts::new(Vec::new(), &[HostName::Any], "--http-host");
        assert!(any.check_head(&absolute, &headers).is_ok());
    }
}
