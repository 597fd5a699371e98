//! Formats whose times are UTC by their definition, though their lines do not say so.

use logpond_record::Assumption;

use super::general::GeneralTime;

/// The same time, with its zone known to be UTC.
pub(super) fn in_utc(found: GeneralTime) -> GeneralTime {
    match found.assumed {
        Assumption::Zone => GeneralTime {
            assumed: Assumption::Nothing,
            ..found
        },
        Assumption::YearAndZone => GeneralTime {
            assumed: Assumption::Year,
            ..found
        },
        _ => found,
    }
}

/// True if a line's time is UTC by the definition of its format, though it does not say so: W3C's extended
/// log format and CloudFront's logs.
pub(super) fn is_utc(line: &[u8]) -> bool {
    match line.get(10) {
        Some(b'\t') => is_cloudfront(line),
        Some(b' ') if line[0].is_ascii_digit() => is_iis(line) || is_httperr(line),
        _ => line.starts_with(b"#Date: ") || line.starts_with(b"#Start-Date: "),
    }
}

/// `2026-11-27 00:51:25 192.0.2.7 41000 10.0.0.7 80 HTTP/1.1 GET / 400 - Hostname -`: errors of Windows' HTTP stack.
fn is_httperr(line: &[u8]) -> bool {
    let is_address = |word: &[u8]| {
        let is_part = |b: &u8| b.is_ascii_hexdigit() || matches!(b, b'.' | b':' | b'%');
        word.len() > 2 && word.iter().all(is_part) && word.iter().any(|b| matches!(b, b'.' | b':'))
    };
    let is_port = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    let mut words = line[11..].split(|byte| *byte == b' ').skip(1);
    let mut pair = || Some((words.next()?, words.next()?));
    let (Some(client), Some(server), Some((version, _))) = (pair(), pair(), pair()) else {
        return false;
    };
    let is_end = |end: (&[u8], &[u8])| is_address(end.0) && is_port(end.1);
    is_end(client) && is_end(server) && (version == b"-" || version.starts_with(b"HTTP/"))
}

/// `2026-11-27 TAB 00:51:25 TAB FRA56-P1 TAB …`
fn is_cloudfront(line: &[u8]) -> bool {
    let Some(location) = line.get(20..) else {
        return false;
    };
    line[19] == b'\t'
        && location.len() > 5
        && location[..3].iter().all(u8::is_ascii_uppercase)
        && location[3].is_ascii_digit()
}

/// `2026-11-27 00:51:25 [site server] 192.0.2.1 GET /path query 443 user …`, the fields that IIS logs by
/// default. A method behind the address of the server, and a port in the third place behind it, tell
/// it from others.
fn is_iis(line: &[u8]) -> bool {
    const WORDS_MAX: usize = 12;
    if line.get(19) != Some(&b' ') {
        return false;
    }
    let mut words = [&b""[..]; WORDS_MAX];
    let split = line[20..].split(|byte| *byte == b' ');
    let count = words
        .iter_mut()
        .zip(split)
        .map(|(place, word)| *place = word)
        .count();
    let words = &words[..count];
    (0..3.min(count.saturating_sub(5))).any(|at| {
        let is_address = words[at].len() > 2
            && words[at]
                .iter()
                .all(|b| b.is_ascii_hexdigit() || matches!(b, b'.' | b':' | b'%'))
            && words[at].iter().any(|b| matches!(b, b'.' | b':'));
        let is_method = words[at + 1].len() > 2 && words[at + 1].iter().all(u8::is_ascii_uppercase);
        let is_port = !words[at + 4].is_empty() && words[at + 4].iter().all(u8::is_ascii_digit);
        is_address && is_method && is_port
    })
}
