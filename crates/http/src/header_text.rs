//! Text in a header of an answer.

/// The longest text, in bytes: proxies refuse longer headers.
const BYTES_MAX: usize = 1 << 10;

/// The beginning of a text in the characters that a header may have; a question mark is there for each other one.
pub(crate) fn plain(text: &str) -> String {
    let plain = text.chars().map(|sign| match sign {
        ' '..='~' => sign,
        _ => '?',
    });
    plain.take(BYTES_MAX).collect()
}
