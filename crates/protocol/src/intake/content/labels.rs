//! Messages of devices whose fields are labelled: pairs with a text behind them, and names before colons.
//!
//! | device | message |
//! | --- | --- |
//! | Cisco Meraki | `src=192.0.2.7:41000 dst=10.0.0.7:80 mac=… request: GET https://example.org/` |
//! | Cisco Firepower | `EventPriority: Low, DeviceUUID: …, AccessControlRuleAction: Allow, SrcIP: 192.0.2.7, …` |
//!
//! Sources: Meraki, "Syslog Event Types and Log Samples"; Cisco, "Cisco Secure Firewall Threat Defense Syslog Messages",
//! 430001 to 430005.

use std::borrow::Cow;

use logpond_record::Value;
use memchr::memmem;

use crate::intake::logfmt;
use crate::intake::outline::Outline;
use crate::intake::sketch::Parts;

/// Labels of Meraki before the text that ends a message.
const LAST: [&str; 4] = [" request: ", " pattern: ", " message: ", " decision: "];

/// Words that begin its messages before the pairs.
const FIRST: [&str; 3] = ["ids_alerted ", "security_filtering_file_scanned ", "allow "];

/// Names that begin messages of Firepower.
const FIREPOWER: [&str; 5] = [
    "EventPriority: ",
    "DeviceUUID: ",
    "AccessControlRuleAction: ",
    "SrcIP: ",
    "AccessControlRuleName: ",
];

/// The most pairs of a message.
const PAIRS_MAX: usize = 128;

/// The fewest, so that a sentence is none.
const PAIRS_MIN: usize = 2;

/// The most bytes of a name.
const NAME_BYTES_MAX: usize = 64;

/// Reads the pairs of Meraki.
pub(super) fn meraki<'a>(text: &'a str, outline: &mut Outline) -> Option<Parts<'a>> {
    let first = FIRST.iter().find(|first| text.starts_with(**first));
    let mut at = first.map_or(0, |first| first.len());
    // Each message without fields comes here: a first word that begins no pair costs little.
    if !begins_pair(&text.as_bytes()[at..]) {
        return None;
    }
    let mut labels = LAST.iter();
    let (label, end) = labels.find_map(|label| {
        let at = memmem::find(text.as_bytes(), label.as_bytes())?;
        Some((label.trim_ascii(), at))
    })?;
    outline.clear();
    let mut parts = Parts::new(12);
    let mut pairs = 0;
    while at < end {
        let rest = &text[at..end];
        let (name, behind) = rest
            .split_once('=')
            .filter(|(name, _)| is_name(name, b"_"))?;
        let start = at + name.len() + 1;
        let (span, after) = match behind.strip_prefix('\'') {
            Some(inside) => {
                let length = inside.find('\'')?;
                ((start + 1, start + 1 + length), start + length + 2)
            }
            None => {
                let length = behind.find(' ').unwrap_or(behind.len());
                ((start, start + length), start + length)
            }
        };
        let read = logfmt::bare_value(&text[span.0..span.1]);
        outline.add(&mut parts, name.as_bytes(), text, span, read);
        pairs += 1;
        at = after + 1;
    }
    let span = (end + label.len() + " ".len() + " ".len(), text.len());
    let value = Value::Str(Cow::Borrowed(text.get(span.0..)?));
    let name = label.trim_end_matches(':').as_bytes();
    outline.add(&mut parts, name, text, span, (value, b't', true));
    (PAIRS_MIN..=PAIRS_MAX).contains(&pairs).then_some(parts)
}

/// True if a name and an equals sign are first.
fn begins_pair(text: &[u8]) -> bool {
    let head = &text[..text.len().min(NAME_BYTES_MAX + 1)];
    let name = head.iter().take_while(|byte| is_name_byte(**byte, b"_"));
    head.get(name.count()) == Some(&b'=')
}

/// True for a message that begins as those of Firepower.
pub(super) fn is_firepower(text: &str) -> bool {
    FIREPOWER.iter().any(|start| text.starts_with(start))
}

/// Reads the values of Firepower; commas within a value are followed by no name and colon.
pub(super) fn firepower<'a>(text: &'a str, outline: &mut Outline) -> Option<Parts<'a>> {
    outline.clear();
    let mut parts = Parts::new(32);
    let mut at = 0;
    for count in 1..=PAIRS_MAX {
        let (name, behind) = text[at..]
            .split_once(": ")
            .filter(|(name, _)| is_name(name, b"_"))?;
        let start = at + name.len() + 2;
        let length = value_bytes(behind);
        let written = &behind[..length];
        let inside = written
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'));
        let value = inside.unwrap_or(written);
        let quote = usize::from(inside.is_some());
        let span = (start + quote, start + quote + value.len());
        outline.add(
            &mut parts,
            name.as_bytes(),
            text,
            span,
            logfmt::bare_value(value),
        );
        at = start + length;
        if at == text.len() {
            return (count >= PAIRS_MIN).then_some(parts);
        }
        at += ", ".len();
    }
    None
}

/// The bytes of a value up to a comma behind which a name and a colon stand.
fn value_bytes(text: &str) -> usize {
    let mut commas = memmem::find_iter(text.as_bytes(), b", ");
    let end = commas.find(|at| {
        let behind = &text[at + 2..];
        behind
            .split_once(": ")
            .is_some_and(|(name, _)| is_name(name, b"_"))
    });
    end.unwrap_or(text.len())
}

fn is_name(name: &str, others: &[u8]) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| is_name_byte(byte, others))
        && name.as_bytes()[0].is_ascii_alphabetic()
}

fn is_name_byte(byte: u8, others: &[u8]) -> bool {
    byte.is_ascii_alphanumeric() || others.contains(&byte)
}
