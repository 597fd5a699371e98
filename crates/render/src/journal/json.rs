//! The JSON formats: every value is text; bytes that are none, or are not printable, are a list of
//! numbers, the values of a name that repeats are a list, and values that are too long are null unless
//! all is to be shown.

use logpond_record::write_json_string;

use super::{Entry, Format, Style, plain};

/// A field is null if its name, an equals sign and its value take so many bytes.
const FIELD_BYTES_MAX: usize = 4096;

pub(super) fn write(entry: &Entry, style: &Style, out: &mut Vec<u8>) {
    match style.format {
        Format::JsonSse => out.extend_from_slice(b"data: "),
        Format::JsonSeq => out.push(b'\x1e'),
        _ => {}
    }
    let mut object = Object {
        is_pretty: style.format == Format::JsonPretty,
        is_empty: true,
        out,
    };
    object.open();
    let texts = [
        ("__CURSOR", Some(entry.cursor.clone())),
        ("__REALTIME_TIMESTAMP", Some(entry.realtime_us.to_string())),
        (
            "__MONOTONIC_TIMESTAMP",
            entry.monotonic_us.map(|us| us.to_string()),
        ),
        ("_BOOT_ID", entry.boot_id.clone()),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            object.member(name, &[text.as_bytes()], true);
        }
    }
    let shown = |group: &&[(String, Vec<u8>)]| style.shows(&group[0].0);
    for group in entry.fields.chunk_by(|a, b| a.0 == b.0).filter(shown) {
        let values: Vec<&[u8]> = group.iter().map(|(_, value)| value.as_slice()).collect();
        object.member(&group[0].0, &values, style.all);
    }
    object.close();
    let end: &[u8] = match style.format {
        Format::JsonSse => b"\n\n",
        _ => b"\n",
    };
    out.extend_from_slice(end);
}

struct Object<'o> {
    is_pretty: bool,
    is_empty: bool,
    out: &'o mut Vec<u8>,
}

impl Object<'_> {
    fn open(&mut self) {
        self.out.push(b'{');
    }

    fn close(&mut self) {
        self.line_of(0);
        self.out.push(b'}');
    }

    /// Begins a line of its own where these are wanted.
    fn line_of(&mut self, depth: usize) {
        if self.is_pretty {
            self.out.push(b'\n');
            self.out.resize(self.out.len() + depth, b'\t');
        }
    }

    fn member(&mut self, name: &str, values: &[&[u8]], all: bool) {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        self.line_of(1);
        write_json_string(name, self.out);
        let colon: &[u8] = if self.is_pretty { b" : " } else { b":" };
        self.out.extend_from_slice(colon);
        let is_shown = |value: &[u8]| all || name.len() + 1 + value.len() < FIELD_BYTES_MAX;
        match values {
            [value] => self.value(value, is_shown(value), 1),
            values => self.list(values.len(), 1, |object, at| {
                object.value(values[at], is_shown(values[at]), 2);
            }),
        }
    }

    fn list(&mut self, length: usize, depth: usize, write: impl Fn(&mut Self, usize)) {
        self.out.push(b'[');
        for at in 0..length {
            if at > 0 {
                self.out.push(b',');
            }
            self.line_of(depth + 1);
            write(self, at);
        }
        self.line_of(depth);
        self.out.push(b']');
    }

    fn value(&mut self, value: &[u8], is_shown: bool, depth: usize) {
        if !is_shown {
            return self.out.extend_from_slice(b"null");
        }
        if plain::is_printable(value) {
            return write_json_string(&String::from_utf8_lossy(value), self.out);
        }
        self.list(value.len(), depth, |object, at| {
            logpond_record::write_int(i64::from(value[at]), object.out);
        });
    }
}
