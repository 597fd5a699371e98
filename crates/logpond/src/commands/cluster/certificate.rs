//! `logpond cluster certificate`: makes the certificate of a node.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use logpond_search::size::parse_duration;
use rustls::pki_types::DnsName;

use super::{CERTIFICATE_MODE, KEY_MODE, write_new};
use crate::cli::ClusterCertificate;
use crate::commands::{Exit, Failure};
use logpond_host::clock;
use logpond_host::terminal::note;
use logpond_listen::net::tls::{
    AUTHORITIES_NAME, AUTHORITY_KEY_NAME, Authority, CERTIFICATE_NAME, KEY_NAME, NODE_VALID, Name,
    is_node_name, valid_until,
};

/// The longest file of an authority that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

pub(super) fn run(args: &ClusterCertificate) -> Result<Exit, Failure> {
    let now = clock::now();
    let name = &args.name;
    if !is_node_name(name) {
        return Err(format!(
            "--name: '{name}' is no name for a node: expected up to 64 letters, digits, '.', '-' \
             and '_'"
        )
        .into());
    }
    let addresses = args
        .address
        .iter()
        .map(|text| address(text))
        .collect::<Result<Vec<_>, _>>()?;
    let valid = match &args.valid {
        None => NODE_VALID,
        Some(text) => lifetime(text)?,
    };
    let authorities = args.ca.join(AUTHORITIES_NAME);
    let end = valid_until(&authorities)?;
    let seconds: u64 = now.seconds().0.try_into().unwrap_or(0);
    if Duration::from_secs(seconds) + valid > end {
        return Err(format!(
            "the authority in {} ends before such a certificate would; give a shorter --valid, or \
             make another authority",
            args.ca.display()
        )
        .into());
    }
    let authorities = read(&authorities)?;
    let authority = Authority::open(&authorities, &read(&args.ca.join(AUTHORITY_KEY_NAME))?)?;
    let made = authority.issue_node(name, &addresses, now, valid)?;
    let files = [
        (KEY_NAME, KEY_MODE, made.key.as_str()),
        (CERTIFICATE_NAME, CERTIFICATE_MODE, &made.certificate),
        (AUTHORITIES_NAME, CERTIFICATE_MODE, &authorities),
    ];
    write_new(&args.out, &files)?;
    let directory = args.out.display();
    note(&format!(
        "the certificate of node {name} is in {directory}: give it to its server by \
         --cluster-tls {directory}. It serves for HTTP, too: --tls-certificate \
         {directory}/{CERTIFICATE_NAME} --tls-key {directory}/{KEY_NAME}, and clients with \
         --ca-file {AUTHORITIES_NAME}."
    ));
    Ok(Exit::Found)
}

fn address(text: &str) -> Result<Name, Failure> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(Name::Address(address));
    }
    let is_number = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    match DnsName::try_from(text) {
        Ok(_) if !is_number => Ok(Name::Dns(text.to_owned())),
        _ => Err(format!(
            "--address: '{text}' is neither an IP address nor a DNS name; expected such as \
             10.0.0.1 or node-1.example.com, without a port"
        )
        .into()),
    }
}

fn lifetime(text: &str) -> Result<Duration, Failure> {
    let nanos = parse_duration(text).map_err(|error| format!("--valid: {error}"))?;
    match u64::try_from(nanos) {
        Ok(nanos) if nanos > 0 => Ok(Duration::from_nanos(nanos)),
        _ => Err("--valid: expected a duration such as 90d".into()),
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    use std::io::Read;
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text))
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    Ok(text)
}
