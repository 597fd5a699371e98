//! Lines of a file that say what the columns of its other lines are: `#Fields` of the W3C Extended Log File Format
//! (IIS, CloudFront, and many proxies), `#fields` and `#types` of Zeek, and the first line of flow logs of Amazon's VPC.
//!
//! A record depends on its entry alone, so what a header says travels with the batch, as formats that users
//! declare do (see [`super::access_format`]): as a label, which is no field.
//!
//! Invariants: a header holds for the lines behind it, up to the next one. If a batch has lines before and
//! behind a header, both are declared, unless lines of one could be taken for lines of the other: then neither is.
//! Lines that no header is known of are read as if there was none.

use logpond_record::Labels;
use memchr::memmem;

use super::access_format::{AccessFormat, DEFINITION_BYTES_MAX, LABEL_PREFIX, flow};
use super::without_mark;

/// Headers of one batch that are looked at: a file has one for each time that its server was started.
const HEADERS_MAX: usize = 64;

/// Formats that headers declare for one batch.
const DECLARED_MAX: usize = 4;

/// Bytes of remarks that are kept until a line follows them.
const BLOCK_BYTES_MAX: usize = 16 << 10;

/// Lines around Zeek's `#fields` that belong to it.
const BLOCK_LINES_MAX: usize = 10;

/// Remarks before a header.
const REMARKS_MAX: usize = 32;

/// The names of headers' formats, which records have as `access_log`.
const W3C_NAME: &str = "w3c";
const ZEEK_NAME: &str = "zeek";
const FLOW_NAME: &str = "flow";

/// The first bytes of headers.
const W3C: &[u8] = b"#Fields:";
const ZEEK: &[u8] = b"#fields\t";

/// The headers of a file, as far as it was read.
#[derive(Debug, Default)]
pub struct FileHeaders {
    /// The last header.
    known: Option<Header>,
    /// Remarks since the last line that was none, of a file that is read line by line.
    block: Vec<u8>,
}

/// A header that was understood.
#[derive(Clone, Debug, PartialEq)]
struct Header {
    name: &'static str,
    definition: String,
    columns: usize,
}

impl FileHeaders {
    /// Takes the next line of a file; true if another header holds for it than for the one before.
    pub fn take_line(&mut self, line: &[u8]) -> bool {
        if is_remark(line) || flow::is_header(line) {
            if self.block.len() + line.len() < BLOCK_BYTES_MAX {
                self.block.extend_from_slice(line);
                self.block.push(b'\n');
            }
            return false;
        }
        if self.block.is_empty() {
            return false;
        }
        let block = std::mem::take(&mut self.block);
        let before = self.known.take();
        self.declare(&block);
        if self.known.is_none() {
            self.known = before;
            return false;
        }
        self.known != before
    }

    /// The labels that declare the last header.
    pub fn labels(&self) -> impl Iterator<Item = (Box<str>, Box<str>)> {
        self.known.iter().map(|header| {
            let label = format!("{LABEL_PREFIX}{}", header.name);
            (label.into(), header.definition.as_str().into())
        })
    }

    /// Takes note of the headers in some lines of the file, which were not seen before; gives the labels that
    /// declare formats for these lines.
    pub fn declare(&mut self, lines: &[u8]) -> Vec<(String, String)> {
        let mut declared: Vec<Header> = self.known.clone().into_iter().collect();
        let found = headers(lines);
        if self.known.is_none() && !found.is_empty() && !begins_with_remarks(lines) {
            self.known = found.into_iter().next_back();
            return Vec::new();
        }
        for header in found {
            if !declared.contains(&header) {
                declared.push(header.clone());
            }
            self.known = Some(header);
        }
        let is_ambiguous = |header: &Header| {
            let others = declared.iter().filter(|other| *other != header);
            others
                .into_iter()
                .any(|other| other.columns == header.columns)
        };
        let certain = declared.iter().filter(|header| !is_ambiguous(header));
        let labels = certain.take(DECLARED_MAX).enumerate().map(|(at, header)| {
            let number = if at > 0 {
                format!("{}", at + 1)
            } else {
                String::new()
            };
            let label = format!("{LABEL_PREFIX}{}{number}", header.name);
            (label, header.definition.clone())
        });
        labels.collect()
    }
}

/// Declares what the headers in a body say of its lines, unless its sender has declared it.
pub(crate) fn declare_for(body: &[u8], labels: &mut Labels) {
    let body = without_mark(body);
    for (name, definition) in FileHeaders::default().declare(body) {
        if !labels.iter().any(|(known, _)| **known == *name) {
            labels.push((name.into(), definition.into()));
        }
    }
}

/// True if a header stands before the first line that is no remark.
fn begins_with_remarks(lines: &[u8]) -> bool {
    let mut remarks = lines.split(|byte| *byte == b'\n').take(REMARKS_MAX);
    let is_header =
        |line: &[u8]| line.starts_with(W3C) || line.starts_with(ZEEK) || flow::is_header(line);
    let first = remarks.find(|line| {
        !is_remark(line.trim_ascii()) && !line.trim_ascii().is_empty() || is_header(line)
    });
    first.is_some_and(is_header)
}

/// True for a line that is a header or a remark of a file with headers, and no record of an access log.
pub(crate) fn is_remark(line: &[u8]) -> bool {
    line.first() == Some(&b'#')
}

/// The headers in some lines, in their order.
fn headers(lines: &[u8]) -> Vec<Header> {
    let starts = [(W3C, W3C_NAME), (ZEEK, ZEEK_NAME)];
    let mut found = Vec::new();
    for (start, name) in starts {
        let at_line = |at: &usize| *at == 0 || lines[at - 1] == b'\n';
        let places = memmem::find_iter(lines, start).filter(at_line);
        for at in places.take(HEADERS_MAX) {
            let definition = match name {
                W3C_NAME => line_at(lines, at),
                _ => block_at(lines, at),
            };
            found.extend(header(name, &definition).map(|header| (at, header)));
        }
    }
    for mark in memmem::find_iter(lines, flow::MARK).take(HEADERS_MAX) {
        let at = memchr::memrchr(b'\n', &lines[..mark]).map_or(0, |end| end + 1);
        let definition = line_at(lines, at);
        if flow::is_header(definition.as_bytes()) && !found.iter().any(|(known, _)| *known == at) {
            found.extend(header(FLOW_NAME, &definition).map(|header| (at, header)));
        }
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, header)| header).collect()
}

/// A header, if its definition compiles.
fn header(name: &'static str, definition: &str) -> Option<Header> {
    let format = AccessFormat::new(definition).ok()?;
    Some(Header {
        name,
        columns: format.columns()?,
        definition: definition.to_owned(),
    })
}

/// The line that begins at `at`.
fn line_at(lines: &[u8], at: usize) -> String {
    let rest = &lines[at..lines.len().min(at + DEFINITION_BYTES_MAX)];
    let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    String::from_utf8_lossy(&rest[..end]).trim_end().to_owned()
}

/// The line that begins at `at`, and those behind it that belong to it.
fn block_at(lines: &[u8], at: usize) -> String {
    let rest = &lines[at..lines.len().min(at + DEFINITION_BYTES_MAX)];
    let block = rest.split(|byte| *byte == b'\n').take(BLOCK_LINES_MAX);
    let block = block.take_while(|line| line.first() == Some(&b'#'));
    let own = block.filter(|line| line.starts_with(ZEEK) || line.starts_with(b"#types\t"));
    let own: Vec<String> = own
        .take(2)
        .map(|line| {
            String::from_utf8_lossy(line)
                .trim_end_matches('\r')
                .to_owned()
        })
        .collect();
    own.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "#Fields: date time c-ip cs-method cs-uri-stem sc-status";
    const B: &str = "#Fields: date time cs-method c-ip cs-uri-stem sc-status";
    const C: &str = "#Fields: date time c-ip";

    #[test]
    fn headers_hold_for_the_lines_behind_them() {
        let mut file = FileHeaders::default();
        assert!(file.declare(b"text\nx #Fields: date time\n").is_empty());
        // Nothing is known of the first line.
        assert!(
            FileHeaders::default()
                .declare(format!("line\n{A}\nline\n").as_bytes())
                .is_empty()
        );
        let declared = |name: &str, text: &str| (format!("_access_log.{name}"), text.to_owned());
        let first = file.declare(format!("#Version: 1.0\r\n{A}\r\nline\r\n").as_bytes());
        assert_eq!(first, [declared("w3c", A)]);
        assert_eq!(file.declare(b"line\n"), [declared("w3c", A)]);
        // Restarted with the same fields.
        assert_eq!(
            file.declare(format!("{A}\n").as_bytes()),
            [declared("w3c", A)]
        );
        // The lines before the header have as many columns.
        assert!(
            file.declare(format!("line\n{B}\nline\n").as_bytes())
                .is_empty()
        );
        assert_eq!(file.declare(b"line\n"), [declared("w3c", B)]);
        let both = file.declare(format!("line\n{C}\nline\n").as_bytes());
        assert_eq!(both, [declared("w3c", B), declared("w3c2", C)]);
        assert_eq!(file.declare(b"line\n"), [declared("w3c", C)]);
    }

    #[test]
    fn lines_are_taken_one_by_one() {
        let mut file = FileHeaders::default();
        let lines: [(&str, bool); 8] = [
            ("#Version: 1.0", false),
            (A, false),
            ("line", true),
            ("line", false),
            (A, false),
            ("line", false),
            (C, false),
            ("line", true),
        ];
        for (at, (line, changes)) in lines.into_iter().enumerate() {
            assert_eq!(file.take_line(line.as_bytes()), changes, "{at}");
        }
        let labels: Vec<_> = file.labels().collect();
        assert_eq!(labels, [("_access_log.w3c".into(), C.into())]);
    }

    #[test]
    fn zeek_declares_names_and_types() {
        let text = b"#separator \\x09\n#path\tconn\n#fields\tts\tuid\tid.orig_p\n#types\ttime\tstring\tport\n1\tC\t2\n";
        let labels = FileHeaders::default().declare(text);
        let definition = "#fields\tts\tuid\tid.orig_p\n#types\ttime\tstring\tport";
        assert_eq!(
            labels,
            [("_access_log.zeek".to_owned(), definition.to_owned())]
        );
    }

    #[test]
    fn flow_logs_declare_their_columns() {
        let header = "version srcaddr dstaddr dstport start end flow-direction";
        let text = format!("{header}\n5 192.0.2.7 192.0.2.8 443 1795740685 1795740745 ingress\n");
        let labels = FileHeaders::default().declare(text.as_bytes());
        assert_eq!(labels, [("_access_log.flow".to_owned(), header.to_owned())]);
        let mut file = FileHeaders::default();
        assert!(!file.take_line(header.as_bytes()));
        assert!(file.take_line(b"5 192.0.2.7 192.0.2.8 443 1795740685 1795740745 ingress"));
        assert_eq!(file.labels().count(), 1);
    }
}
