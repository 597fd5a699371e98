//! Records as the kernel sends them by netlink (`linux/netlink.h`, `linux/audit.h`).
//!
//! ```text
//! length u32 · type u16 · flags u16 · sequence u32 · port u32 · audit(1772409600.123:456): …
//! ```
//!
//! Numbers are in the machine's byte order; messages begin at multiples of four bytes. What is none of
//! a record is passed over.

use super::record_types;

/// Bytes of a message's header.
const HEADER_BYTES: usize = 16;

/// Messages begin at multiples of this.
const ALIGNMENT: usize = 4;

/// Lower types are orders to the kernel and its answers, but for these two.
const RECORDS_FROM: u16 = 1100;
const USER: u16 = 1005;
const LOGIN: u16 = 1006;

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The number of its type.
    pub kind: u16,
    /// Its text, from `audit(` on.
    pub text: &'a [u8],
}

/// The records in a datagram.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    /// Of the bytes of a datagram.
    pub fn new(datagram: &'a [u8]) -> Messages<'a> {
        Messages { rest: datagram }
    }

    /// The next message, whatever it is.
    fn message(&mut self) -> Option<Message<'a>> {
        let (header, _) = self.rest.split_first_chunk::<HEADER_BYTES>()?;
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        let length = usize::try_from(length).ok()?;
        let text = self.rest.get(HEADER_BYTES..length)?;
        let next = length.next_multiple_of(ALIGNMENT).min(self.rest.len());
        self.rest = &self.rest[next..];
        let end = text.iter().rposition(|byte| !matches!(byte, 0 | b'\n'));
        Some(Message {
            kind: u16::from_ne_bytes([header[4], header[5]]),
            text: &text[..end.map_or(0, |at| at + 1)],
        })
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        // Each round takes a header at least.
        loop {
            let message = self.message()?;
            let is_record = message.kind >= RECORDS_FROM || matches!(message.kind, USER | LOGIN);
            if is_record && !message.text.is_empty() {
                return Some(message);
            }
        }
    }
}

impl Message<'_> {
    /// The line that auditd would write: `type=SYSCALL msg=audit(…): …`.
    pub fn line(&self) -> Vec<u8> {
        let kind = match record_types::name_of(self.kind) {
            Some(name) => format!("type={name} msg="),
            None => format!("type=UNKNOWN[{}] msg=", self.kind),
        };
        [kind.as_bytes(), self.text].concat()
    }
}

/// Any bytes as a datagram.
///
/// # Panics
/// If a record is longer than the datagram, or its line is read as one of another type.
pub fn fuzz_netlink(data: &[u8]) {
    for message in Messages::new(data) {
        assert!(message.text.len() + HEADER_BYTES <= data.len());
        let line = message.line();
        if super::is_candidate(&line) {
            let text = String::from_utf8_lossy(&line);
            let kind = super::beside(&text).fields;
            assert_eq!(kind[0].1, logpond_record::Value::Int(message.kind.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, text: &[u8]) -> Vec<u8> {
        let length = u32::try_from(HEADER_BYTES + text.len()).unwrap();
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(text);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        bytes
    }

    #[test]
    fn records_are_lines_as_of_auditd() {
        let datagram = [
            message(1300, b"audit(1.2:3): a=b"),
            message(2, b"an error"),
            message(1000, b"a status"),
            message(1006, b"audit(1.2:4): pid=7\n\0"),
            message(1998, b"audit(1.2:5): x"),
            message(1320, b"\0"),
        ];
        let lines: Vec<_> = Messages::new(&datagram.concat())
            .map(|message| String::from_utf8(message.line()).unwrap())
            .collect();
        assert_eq!(
            lines,
            [
                "type=SYSCALL msg=audit(1.2:3): a=b",
                "type=LOGIN msg=audit(1.2:4): pid=7",
                "type=UNKNOWN[1998] msg=audit(1.2:5): x",
            ]
        );
    }

    #[test]
    fn lengths_are_not_believed() {
        let whole = message(1300, b"audit(1.2:3): a=b");
        for end in 0..whole.len() - 3 {
            assert_eq!(Messages::new(&whole[..end]).next(), None, "{end}");
        }
        for length in [0u32, 15, 16, 1000, u32::MAX] {
            let mut bytes = whole.clone();
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(Messages::new(&bytes).next(), None, "{length}");
        }
    }
}
