//! `-o logfmt`: `time=… id=… msg="…" key=value…`, one record a line.

use logpond_record::Value;

use super::line::utc;
use super::{Render, Row};
use logpond_host::terminal::text::{write_pair, write_value};

/// See the module.
pub(super) struct Logfmt;

impl Render for Logfmt {
    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>) {
        if let Some(time) = row.time {
            out.extend_from_slice(format!("time={} ", utc(time)).as_bytes());
        }
        out.extend_from_slice(format!("id={}", row.id).as_bytes());
        if let Some(message) = &row.message {
            out.extend_from_slice(b" msg=");
            write_value(&Value::text(message), out);
        }
        for (name, value) in row.plain_fields() {
            out.push(b' ');
            write_pair(name, value, out);
        }
        out.push(b'\n');
    }
}
