//! Which of the clients that an authority vouches for are let in.
//!
//! A rule asks for one thing of a certificate. Names are compared exactly, but for a `*` where it says so,
//! and a wildcard in a certificate stands for itself alone.

use std::net::IpAddr;
use std::str::FromStr;
use std::{error, fmt};

use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use logpond_tls::{common_name, fingerprint, organizational_units};
use rustls::pki_types::{CertificateDer, ServerName};
use webpki::EndEntityCert;

use crate::NamePattern;

/// A rule as it is written: `cn=NAME`, `ou=NAME`, `dns=NAME`, `uri=URI`, `ip=ADDRESS` or
/// `spki-sha256=HASH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRule(Rule);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    CommonName(String),
    OrganizationalUnit(String),
    Dns(NamePattern),
    Uri(String),
    Address(IpAddr),
    /// Of the public key with its algorithm, as the certificate has it.
    Key([u8; 32]),
}

/// The common name of a certificate.
pub(crate) fn common_name_of(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    common_name(certificate.subject())
}

/// What was written is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRuleError {
    text: String,
    expected: &'static str,
}

impl fmt::Display for ClientRuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no rule for clients; {}",
            self.text, self.expected
        )
    }
}

impl error::Error for ClientRuleError {}

impl FromStr for ClientRule {
    type Err = ClientRuleError;

    fn from_str(text: &str) -> Result<ClientRule, ClientRuleError> {
        let rule = match text.split_once('=') {
            Some(("cn", name)) => plain(name).map(Rule::CommonName),
            Some(("ou", name)) => plain(name).map(Rule::OrganizationalUnit),
            Some(("dns", name)) => dns(name),
            Some(("uri", uri)) => uri_rule(uri),
            Some(("ip", address)) => {
                let address = address.parse().map(Rule::Address);
                address.map_err(|_| "write an address of IPv4 or IPv6, such as ip=192.0.2.7")
            }
            Some(("spki-sha256", hash)) => key(hash),
            _ => Err("write cn=NAME, ou=NAME, dns=NAME, uri=URI, ip=ADDRESS or spki-sha256=HASH"),
        };
        rule.map(ClientRule).map_err(|expected| ClientRuleError {
            text: text.to_owned(),
            expected,
        })
    }
}

/// A name that is compared as it is.
fn plain(name: &str) -> Result<String, &'static str> {
    match name {
        "" => Err("a name has at least one character"),
        // It would let in nobody, and be meant otherwise.
        name if name.contains('*') => Err("only dns= and uri= take a '*'"),
        name => Ok(name.to_owned()),
    }
}

/// A host's name, or `*.` and the rest, for a single label.
fn dns(name: &str) -> Result<Rule, &'static str> {
    let pattern = name.parse().map(Rule::Dns);
    pattern.map_err(|_| "write a host's name, or *.example.org for all one label longer")
}

/// A URI; behind its host `*` is a part, and `**` at the end all that follow.
fn uri_rule(uri: &str) -> Result<Rule, &'static str> {
    if !uri
        .split_once(':')
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty())
    {
        return Err("a URI begins with a scheme, such as spiffe://example.org/service");
    }
    let parts: Vec<&str> = uri.split('/').collect();
    let last = parts.len() - 1;
    // The scheme, nothing, and the host come before the parts of a path.
    let has_host = uri.contains("://");
    let is_right = |(at, part): (usize, &&str)| match *part {
        "*" => has_host && at > 2,
        "**" => has_host && at > 2 && at == last,
        part => !part.contains('*'),
    };
    if parts.iter().enumerate().all(is_right) {
        Ok(Rule::Uri(uri.to_owned()))
    } else {
        Err("a '*' stands for a whole part of a URI's path, and '**' for all at its end")
    }
}

/// A hash in hexadecimal digits, also with colons between their pairs, or in base 64.
fn key(hash: &str) -> Result<Rule, &'static str> {
    let digits = hash.replace(':', "");
    let by_base64 = |engine: &GeneralPurpose| engine.decode(hash).ok();
    let hash = match digits.len() {
        64 => hex(&digits),
        44 => by_base64(&STANDARD),
        43 => by_base64(&STANDARD_NO_PAD),
        _ => None,
    };
    let hash = hash.and_then(|hash| hash.try_into().ok());
    let wrong = "write the SHA-256 of a public key, in 64 hexadecimal digits or 44 of base 64";
    hash.map(Rule::Key).ok_or(wrong)
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| {
        let [high, low] = [pair[0], pair[1]].map(|digit| char::from(digit).to_digit(16));
        u8::try_from(high? << 4 | low?).ok()
    };
    pairs.map(byte).collect()
}

impl ClientRule {
    /// Whether a certificate is of these. Says nothing about who signed it.
    pub(crate) fn is_met(&self, certificate: &CertificateDer<'_>) -> bool {
        let Ok(certificate) = EndEntityCert::try_from(certificate) else {
            return false;
        };
        match &self.0 {
            Rule::CommonName(name) => common_name(certificate.subject()).as_ref() == Some(name),
            Rule::OrganizationalUnit(name) => {
                organizational_units(certificate.subject()).contains(name)
            }
            Rule::Dns(wanted) => {
                let mut names = certificate.valid_dns_names();
                names.any(|name| wanted.is_of(&name.to_ascii_lowercase()))
            }
            Rule::Uri(wanted) => certificate.valid_uri_names().any(|uri| is_uri(wanted, uri)),
            Rule::Address(address) => {
                let name = ServerName::IpAddress((*address).into());
                certificate.verify_is_valid_for_subject_name(&name).is_ok()
            }
            Rule::Key(hash) => fingerprint(&certificate.subject_public_key_info()) == *hash,
        }
    }
}

fn is_uri(wanted: &str, uri: &str) -> bool {
    let mut parts = uri.split('/');
    for wanted in wanted.split('/') {
        let is_one = match (wanted, parts.next()) {
            ("**", first) => {
                return first.is_some_and(is_plain_part) && parts.all(is_plain_part);
            }
            ("*", part) => part.is_some_and(is_plain_part),
            (wanted, part) => part == Some(wanted),
        };
        if !is_one {
            return false;
        }
    }
    parts.next().is_none()
}

/// Whether a part of a path is one for all who read it: nothing in it ends the path, stands for another
/// character, or for another part.
fn is_plain_part(part: &str) -> bool {
    let ends_or_stands = |byte: char| matches!(byte, '?' | '#' | '%' | '*' | '\\');
    !matches!(part, "" | "." | "..")
        && !part.contains(ends_or_stands)
        && !part.chars().any(char::is_control)
}

#[cfg(test)]
mod tests;
