//! Messages that are no two alike: the same ones in each run.

use crate::draw::Draw;

/// Bytes of a message of [`syslog`], its line end not counted.
pub(super) const SYSLOG_BYTES: usize = 200;

/// Words that fill messages up.
const WORDS: [&str; 16] = [
    "accepted", "basket", "cache", "customer", "delivery", "express", "gateway", "invoice",
    "latency", "payment", "queue", "refund", "retried", "session", "upstream", "voucher",
];

/// Text of an application of exactly so many bytes.
pub(super) fn text(number: u64, bytes: usize) -> String {
    let mut draw = Draw::new(number, 0);
    let drawn = draw.next();
    let mut text = format!(
        "order {number} of customer {} took {}.{:03} ms",
        drawn % 50_000,
        drawn >> 20 & 0xff,
        drawn >> 32 & 0x1ff,
    );
    while text.len() < bytes {
        text.push(' ');
        text.push_str(WORDS[draw.below(WORDS.len())]);
    }
    text.truncate(bytes);
    text
}

/// A message of RFC 5424.
pub(super) fn syslog(number: u64) -> String {
    let micros = number * 10;
    let head = format!(
        "<{}>1 2026-03-02T{:02}:{:02}:{:02}.{:06}Z web-{:02} shop {} ORDER - ",
        128 + number % 8,
        micros / 3_600_000_000 % 24,
        micros / 60_000_000 % 60,
        micros / 1_000_000 % 60,
        micros % 1_000_000,
        number % 40,
        4000 + number % 16,
    );
    let text = text(number, SYSLOG_BYTES - head.len());
    head + &text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_their_length_and_differ() {
        let messages: Vec<_> = [0, 1, 999_999, 10_000_000].map(syslog).into();
        assert!(messages.iter().all(|message| message.len() == SYSLOG_BYTES));
        assert!(messages.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(syslog(7), syslog(7));
    }
}
