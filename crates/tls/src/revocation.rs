//! Files of revocation lists.

use std::path::Path;
use std::time::Duration;

use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::{self, PemObject};

use super::TlsError;
use super::der::{GENERALIZED_TIME, INTEGER, SEQUENCE, UTC_TIME, element, tagged};
use super::error::time_text;
use super::pem::{not_pem, read};

/// The longest file that is read. Lists of authorities with a million certificates have tens of
/// thousands of entries, of 40 bytes each.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A list that holds now.
#[derive(Debug)]
pub(super) struct RevocationList {
    pub(super) der: CertificateRevocationListDer<'static>,
    /// When the next one is there at the latest, since 1970.
    pub(super) next_update: Duration,
}

/// Reads the lists of a file: several in PEM, or one in DER, as authorities publish them.
///
/// # Errors
/// When the file cannot be read, holds none, a broken one, or one that is over `now`.
pub(super) fn read_revocations(
    path: &Path,
    now: Duration,
) -> Result<Vec<RevocationList>, TlsError> {
    let bytes = read(path, FILE_BYTES_MAX)?;
    let found = match bytes.first() {
        Some(&SEQUENCE) => vec![CertificateRevocationListDer::from(bytes)],
        _ => {
            let found = CertificateRevocationListDer::pem_slice_iter(&bytes);
            let found: Result<Vec<_>, _> = found.collect();
            found.map_err(|error| not_pem(path, REVOCATIONS, &error))?
        }
    };
    if found.is_empty() {
        return Err(not_pem(path, REVOCATIONS, &pem::Error::NoItemsFound));
    }
    let lists = found.into_iter().map(|der| check(der, path, now));
    lists.collect()
}

const REVOCATIONS: &str = "revocation list";

/// A list of the kinds that can be used, which holds.
fn check(
    der: CertificateRevocationListDer<'static>,
    path: &Path,
    now: Duration,
) -> Result<RevocationList, TlsError> {
    let bad = |reason| TlsError::BadRevocations {
        path: path.to_owned(),
        reason,
    };
    let unusable = |error: &dyn std::fmt::Display| {
        bad(format!(
            "cannot be used ({error}); fetch the authority's complete list, X.509 version 2"
        ))
    };
    let parsed = webpki::BorrowedCertRevocationList::from_der(&der);
    let entries = parsed.and_then(|list| list.to_owned().map(drop));
    entries.map_err(|error| unusable(&error))?;
    let next_update = next_update(&der).ok_or_else(|| unusable(&"no time of the next one"))?;
    if next_update < now {
        return Err(bad(format!(
            "expired at {}; put the authority's newest one in its place",
            time_text(next_update)
        )));
    }
    Ok(RevocationList { der, next_update })
}

/// When the list after this one is there (RFC 5280, 5.1.2.5).
fn next_update(list: &[u8]) -> Option<Duration> {
    let (whole, _) = tagged(SEQUENCE, list)?;
    let (signed, _) = tagged(SEQUENCE, whole)?;
    let (_version, rest) = tagged(INTEGER, signed)?;
    let (_algorithm, rest) = tagged(SEQUENCE, rest)?;
    let (_issuer, rest) = tagged(SEQUENCE, rest)?;
    let (_, _this_update, rest) = element(rest)?;
    let (tag, text, _) = element(rest)?;
    let text = str::from_utf8(text).ok()?;
    match (tag, text.as_bytes()) {
        // RFC 5280, 4.1.2.5.1: two digits are of the years from 1950 to 2049.
        (UTC_TIME, [b'5'..=b'9', ..]) => moment(&format!("19{text}")),
        (UTC_TIME, _) => moment(&format!("20{text}")),
        (GENERALIZED_TIME, _) => moment(text),
        _ => None,
    }
}

/// A time as DER has it, `20300102030405Z`.
fn moment(text: &str) -> Option<Duration> {
    let time = jiff::civil::DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    let since_1970 = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    let seconds = since_1970.timestamp().as_second();
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let at = |text: &str| {
            let time: jiff::Timestamp = text.parse().unwrap();
            Some(Duration::from_secs(time.as_second().try_into().unwrap()))
        };
        assert_eq!(moment("20300102030405Z"), at("2030-01-02T03:04:05Z"));
        assert_eq!(moment("21000102030405Z"), at("2100-01-02T03:04:05Z"));
        for wrong in ["", "20300102030405", "20301302030405Z", "2030010203Z"] {
            assert_eq!(moment(wrong), None, "{wrong}");
        }
    }
}
