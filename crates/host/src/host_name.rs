//! Names of hosts under which HTTP may be asked without a token.

/// The most names; each request may be compared with all.
const NAMES_MAX: usize = 64;

/// The longest name (RFC 1035, section 2.3.4).
const NAME_BYTES_MAX: usize = 253;

/// A name of a host, or several names, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostName {
    /// Every name: requests are not checked.
    Any,
    /// This name.
    Exact(Box<str>),
    /// Every name below a domain, without that domain.
    Below(Box<str>),
}

impl HostName {
    /// Reads `NAME`, `*.DOMAIN` or `*`.
    ///
    /// # Errors
    /// What is expected, in words.
    pub fn parse(text: &str) -> Result<HostName, String> {
        if text == "*" {
            return Ok(HostName::Any);
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        match name.strip_prefix("*.") {
            Some(domain) if is_name(domain) => Ok(HostName::Below(domain.into())),
            None if is_name(&name) => Ok(HostName::Exact(name.into())),
            _ => Err(format!(
                "'{text}' is no name of a host; expected a name without a port, such as \
                 logs.example.org, *.example.org or *"
            )),
        }
    }

    /// Whether a name in lower case, without a dot at its end, is one of these.
    pub fn includes(&self, name: &str) -> bool {
        match self {
            HostName::Any => true,
            HostName::Exact(own) => **own == *name,
            HostName::Below(domain) => name
                .strip_suffix(&**domain)
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|label| !label.is_empty()),
        }
    }
}

/// True if a text is a name of a host, without a dot at its end: labels of letters, digits, `-` and `_`, as in RFC 1035,
/// section 2.3.1, and in names of services.
pub fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_label = |label: &str| !label.is_empty() && label.bytes().all(is_part);
    text.len() <= NAME_BYTES_MAX && text.split('.').all(is_label)
}

/// Reads names with commas or line ends between them.
///
/// # Errors
/// What is wrong with which name, in words.
pub fn host_names(text: &str) -> Result<Vec<HostName>, String> {
    if text == "off" {
        return Ok(Vec::new());
    }
    let names = text.split([',', '\n']).map(str::trim);
    let names = names.filter(|name| !name.is_empty()).map(HostName::parse);
    let names: Vec<HostName> = names.collect::<Result<_, _>>()?;
    match names.len() {
        0..=NAMES_MAX => Ok(names),
        _ => Err(format!("there are more than {NAMES_MAX} names")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_domains_and_all() {
        let names = host_names("Logs.Example.org., *.internal\nlog_pond").unwrap();
        assert_eq!(
            names,
            [
                HostName::Exact("logs.example.org".into()),
                HostName::Below("internal".into()),
                HostName::Exact("log_pond".into()),
            ]
        );
        assert_eq!(host_names("*"), Ok(vec![HostName::Any]));
        assert_eq!(host_names("off"), Ok(Vec::new()));
        for bad in ["a:7650", "http://a", "a..b", "*.", "*a", "[::1]", "a b"] {
            assert!(host_names(bad).is_err(), "{bad}");
        }
        assert!(host_names(&"a,".repeat(NAMES_MAX)).is_ok());
        assert!(host_names(&"a,".repeat(NAMES_MAX + 1)).is_err());
    }

    #[test]
    fn a_domain_has_the_names_below_it() {
        let below = HostName::Below("example.org".into());
        let table = [
            ("a.example.org", true),
            ("a.b.example.org", true),
            ("example.org", false),
            (".example.org", false),
            ("aexample.org", false),
            ("a.example.org.evil.example", false),
        ];
        for (name, is_below) in table {
            assert_eq!(below.includes(name), is_below, "{name}");
        }
    }
}
