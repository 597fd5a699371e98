//! Where the frontends of a proxy are written: on the command line, or in a settings file.

use std::fmt::Display;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::{Proxy, ProxyFrontend};
use crate::commands::{Failure, variable};
use logpond_settings::{
    Age, Environment, Origin, ProxySection, TextValue, WeighedTarget, parse_age, read_proxies,
};

/// Where the frontends are written.
#[derive(Debug)]
pub(super) enum Source {
    /// By flags; they stay what they are.
    Flags(Box<ProxySection>),
    /// In this file, which may change.
    File(PathBuf),
}

/// A frontend as it is written, and where.
pub(super) type Placed = (Option<Origin>, ProxySection);

impl Source {
    /// # Errors
    /// When nothing is said, or flags that mean nothing.
    pub(super) fn of(args: &Proxy) -> Result<Source, Failure> {
        if !args.frontend.listen.is_empty() {
            return Ok(Source::Flags(Box::new(section(&args.frontend)?)));
        }
        if let Some(path) = &args.config {
            return Ok(Source::File(path.clone()));
        }
        let files = Environment {
            variable: &variable,
            is_root: rustix::process::geteuid().is_root(),
        }
        .files();
        let mut present = files.iter().filter(|path| path.exists());
        match present.next() {
            Some(path) => Ok(Source::File(path.clone())),
            None => Err(
                "there is nothing to do: give --listen, --cert, --key and --to, or a \
                         settings file with [[proxy]] sections by --config"
                    .into(),
            ),
        }
    }

    /// The file, if it is one.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Source::Flags(_) => None,
            Source::File(path) => Some(path),
        }
    }

    /// Reads what is written now: at least one frontend.
    ///
    /// # Errors
    /// When the file cannot be read, says what it cannot, or has no such section.
    pub(super) fn read(&self) -> Result<Vec<Placed>, Failure> {
        let path = match self {
            Source::Flags(section) => return Ok(vec![(None, (**section).clone())]),
            Source::File(path) => path,
        };
        let sections = read_proxies(path)?.into_iter();
        let sections: Vec<Placed> = sections
            .map(|(origin, section)| (Some(origin), section))
            .collect();
        if sections.is_empty() {
            Err(format!(
                "{} has no [[proxy]] section: write one with listen, cert, key and to",
                path.display()
            )
            .into())
        } else {
            Ok(sections)
        }
    }
}

/// What flags say, as if it were written in a file.
fn section(args: &ProxyFrontend) -> Result<ProxySection, Failure> {
    Ok(ProxySection {
        name: None,
        listen: args.listen.clone(),
        cert: args.cert.clone(),
        key: args.key.clone(),
        acme: all("--acme", &args.acme.acme, str::parse)?,
        acme_contact: args.acme.acme_contact.clone(),
        acme_directory: args.acme.acme_directory.clone(),
        acme_dir: args.acme.acme_dir.clone(),
        acme_ca: args.acme.acme_ca.clone(),
        alpn: args.alpn.clone(),
        strict_sni: args.strict_sni,
        ticket_secret: args.ticket_secret.clone(),
        client_ca: args.clients.client_ca.clone(),
        client_auth: args.clients.client_auth,
        client_crl: args.clients.client_crl.clone(),
        client_allow: all("--client-allow", &args.clients.client_allow, str::parse)?,
        to: all("--to", &args.to, |text| {
            text.parse().map(WeighedTarget::new)
        })?,
        check_interval: time("--check-interval", &args.check_interval)?,
        route: Vec::new(),
        proxy_protocol: args.proxy_protocol,
        accept_proxy: all("--accept-proxy", &args.accept_proxy, str::parse)?,
        handshake_timeout: time("--handshake-timeout", &args.handshake_timeout)?,
        connect_timeout: time("--connect-timeout", &args.connect_timeout)?,
        idle_timeout: time("--idle-timeout", &args.idle_timeout)?,
        half_close_timeout: time("--half-close-timeout", &args.half_close_timeout)?,
        connections_max: args.connections_max,
        connections_per_address_max: args.connections_per_address_max,
        handshakes_per_address_per_second_max: args
            .handshakes_per_address_per_second_max
            .and_then(NonZeroU32::new),
    })
}

/// All values of a flag.
fn all<T, E: Display>(
    flag: &str,
    texts: &[String],
    read: impl Fn(&str) -> Result<T, E>,
) -> Result<Vec<T>, Failure> {
    let read = |text: &String| read(text).map_err(|error| format!("{flag}: {error}").into());
    texts.iter().map(read).collect()
}

fn time(flag: &str, text: &Option<String>) -> Result<Option<Age>, Failure> {
    let read = |text: &String| duration(flag, text).map(TextValue);
    text.as_ref().map(read).transpose()
}

/// What a flag says of a time.
pub(super) fn duration(flag: &str, text: &str) -> Result<Duration, Failure> {
    parse_age(text).map_err(|error| format!("{flag}: {error}").into())
}
