//! Messages of the Linux kernel, as each reading of `/dev/kmsg` gives one (Documentation/ABI/testing/
//! dev-kmsg).
//!
//! ```text
//! 6,1234,5140900,-;usb 1-1: new device
//!  SUBSYSTEM=usb
//!  DEVICE=+usb:1-1
//! ```
//!
//! The head is the priority, the message's number, microseconds since the boot and flags; parts that
//! newer kernels append to it are passed over. Bytes that cannot be printed are written as `\x0a`, in
//! the text and in the fields.

use logpond_record::cast;

/// The longest message with its fields (the kernel's `CONSOLE_EXT_LOG_MAX`).
pub const MESSAGE_BYTES_MAX: usize = 8 << 10;

/// The most fields of a message; the kernel gives two.
const FIELDS_MAX: usize = 32;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Facility times eight, and severity.
    pub priority: u32,
    /// Its number; each message has the next one.
    pub sequence: u64,
    /// When it was written, in microseconds since the boot.
    pub since_boot_us: u64,
    /// Its text.
    pub text: Vec<u8>,
    /// What the kernel says beside the text: `SUBSYSTEM`, `DEVICE`.
    pub fields: Vec<(String, Vec<u8>)>,
}

impl Message {
    /// Reads what one reading gave. `None` if it is no message.
    pub fn read(bytes: &[u8]) -> Option<Message> {
        let bytes = &bytes[..bytes.len().min(MESSAGE_BYTES_MAX)];
        let semicolon = memchr::memchr(b';', bytes)?;
        let head = std::str::from_utf8(&bytes[..semicolon]).ok()?;
        let mut parts = head.split(',');
        let priority = parts.next()?.parse().ok()?;
        let sequence = parts.next()?.parse().ok()?;
        let since_boot_us = parts.next()?.parse().ok()?;
        let mut lines = bytes[semicolon + 1..].split(|byte| *byte == b'\n');
        let text = unescape(lines.next()?);
        let fields = lines.filter_map(field).take(FIELDS_MAX).collect();
        Some(Message {
            priority,
            sequence,
            since_boot_us,
            text,
            fields,
        })
    }

    /// The facility, 0 for the kernel itself.
    pub fn facility(&self) -> u32 {
        self.priority >> 3
    }

    /// The severity, 0 to 7.
    pub fn severity(&self) -> u32 {
        self.priority & 7
    }

    /// Who wrote it and with which number, if a program did and said so (`systemd[1]: …`), and the
    /// text behind that.
    pub fn writer(&self) -> (Option<&str>, Option<&str>, &[u8]) {
        let none = (None, None, &self.text[..]);
        if self.facility() == 0 {
            return none;
        }
        let Some(colon) = memchr::memmem::find(&self.text, b": ") else {
            return none;
        };
        let Ok(tag) = std::str::from_utf8(&self.text[..colon]) else {
            return none;
        };
        let (name, pid) = match tag.strip_suffix(']').and_then(|tag| tag.split_once('[')) {
            Some((name, pid)) => (name, Some(pid)),
            None => (tag, None),
        };
        let is_number = |pid: &str| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit());
        if name.is_empty() || name.contains(char::is_whitespace) || !pid.is_none_or(is_number) {
            return none;
        }
        (Some(name), pid, &self.text[colon + 2..])
    }
}

/// ` NAME=value`
fn field(line: &[u8]) -> Option<(String, Vec<u8>)> {
    let line = line.strip_prefix(b" ")?;
    let equals = memchr::memchr(b'=', line)?;
    let name = std::str::from_utf8(&line[..equals]).ok()?;
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let is_right = !name.is_empty() && name.bytes().all(is_name);
    is_right.then(|| (name.to_owned(), unescape(&line[equals + 1..])))
}

/// Takes `\x0a` for what it stands for.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        match escaped(&rest[at..]) {
            Some(byte) => {
                out.push(byte);
                rest = &rest[at + 4..];
            }
            None => {
                out.push(b'\\');
                rest = &rest[at + 1..];
            }
        }
    }
    out.extend_from_slice(rest);
    out
}

fn escaped(text: &[u8]) -> Option<u8> {
    let [b'\\', b'x', high, low] = text.first_chunk()? else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some(cast::low_u8(digit(*high)? * 16 + digit(*low)?))
}

/// Any bytes as a message: what is read is no longer than they are.
pub fn fuzz_kmsg(data: &[u8]) {
    let Some(message) = Message::read(data) else {
        return;
    };
    let fields = message.fields.iter();
    let bytes: usize = fields.map(|(name, value)| name.len() + value.len()).sum();
    assert!(message.text.len() + bytes <= data.len().min(MESSAGE_BYTES_MAX));
    assert!(message.severity() < 8);
    let (name, pid, text) = message.writer();
    assert!(message.text.ends_with(text));
    assert!(name.is_some() || pid.is_none());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read() {
        let message = Message::read(
            b"6,461,13725123150,-,caller=T1;usb 1-1: caf\\xc3\\xa9 \\x5c \\q\n SUBSYSTEM=usb\n DEVICE=+usb:1-1\n",
        );
        let message = message.unwrap();
        assert_eq!((message.facility(), message.severity()), (0, 6));
        assert_eq!(
            (message.sequence, message.since_boot_us),
            (461, 13_725_123_150)
        );
        assert_eq!(message.text, "usb 1-1: café \\ \\q".as_bytes());
        let fields = [("SUBSYSTEM", &b"usb"[..]), ("DEVICE", b"+usb:1-1")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_vec()));
        assert_eq!(message.fields, fields);
        // The kernel's own texts have no writer.
        assert_eq!(message.writer(), (None, None, &message.text[..]));
    }

    #[test]
    fn programs_that_write_are_told() {
        let table = [
            (
                "12,1,2,-;systemd[1]: Started x.",
                (Some("systemd"), Some("1"), "Started x."),
            ),
            ("12,1,2,-;tool: a: b", (Some("tool"), None, "a: b")),
            ("12,1,2,-;two words: a", (None, None, "two words: a")),
            ("12,1,2,-;x[y]: a", (None, None, "x[y]: a")),
            ("12,1,2,-;nothing", (None, None, "nothing")),
            ("12,1,2,-;", (None, None, "")),
        ];
        for (bytes, (name, pid, text)) in table {
            let message = Message::read(bytes.as_bytes()).unwrap();
            assert_eq!(message.writer(), (name, pid, text.as_bytes()), "{bytes}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for bytes in [
            "",
            ";",
            "6;x",
            "6,1;x",
            "a,1,2,-;x",
            "6,-1,2,-;x",
            "6,1,2,-",
        ] {
            assert_eq!(Message::read(bytes.as_bytes()), None, "{bytes}");
        }
        let odd = Message::read(b"6,1,2,-;x\nA=1\n =1\n a=1\n B\n C=\\x4").unwrap();
        assert_eq!(odd.fields, [("C".to_owned(), b"\\x4".to_vec())]);
    }
}
