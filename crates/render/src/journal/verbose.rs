//! `-o verbose`: all fields, a line each, below the time and the cursor.

use super::{Entry, Style, plain, stamp};

/// The length of a field with its name from which on it is a blob where lines are cut.
const CUT_BYTES_MIN: usize = 300;

pub(super) fn write(entry: &Entry, style: &Style, out: &mut Vec<u8>) {
    let (on, off) = if style.colour {
        (plain::UNDERLINE, plain::NORMAL)
    } else {
        ("", "")
    };
    let time = stamp::precise(entry.shown_us, &style.zone);
    out.extend_from_slice(format!("{on}{time}{off} [").as_bytes());
    plain::put(entry.cursor.as_bytes(), style, out);
    out.extend_from_slice(b"]\n");
    if let Some(boot) = entry.boot_id.as_ref().filter(|_| style.shows("_BOOT_ID")) {
        write_field("_BOOT_ID", boot.as_bytes(), style, out);
    }
    for (name, value) in entry.fields.iter().filter(|(name, _)| style.shows(name)) {
        write_field(name, value, style, out);
    }
}

fn write_field(name: &str, value: &[u8], style: &Style, out: &mut Vec<u8>) {
    let (on, off) = if style.colour && name == "MESSAGE" {
        (plain::BRIGHT, plain::NORMAL)
    } else {
        ("", "")
    };
    out.extend_from_slice(format!("    {on}").as_bytes());
    plain::put(name.as_bytes(), style, out);
    out.push(b'=');
    let is_cut = style.columns > 0 && name.len() + 1 + value.len() >= CUT_BYTES_MIN;
    if style.all || (plain::is_printable(value) && !is_cut) {
        let line = |line: &[u8], _: usize, out: &mut Vec<u8>| plain::put(line, style, out);
        plain::lines(value, 4 + name.len() + 1, line, out);
        out.extend_from_slice(off.as_bytes());
    } else {
        let blob = plain::blob(value.len());
        out.extend_from_slice(format!("{blob}{off}\n").as_bytes());
    }
}
