//! `-o export`: the Journal Export Format, which other programs of systemd read.

use super::{Entry, Style, plain};

pub(super) fn write(entry: &Entry, style: &Style, out: &mut Vec<u8>) {
    let mut head = format!(
        "__CURSOR={}\n__REALTIME_TIMESTAMP={}\n",
        entry.cursor, entry.realtime_us
    );
    if let Some(us) = entry.monotonic_us {
        head.push_str(&format!("__MONOTONIC_TIMESTAMP={us}\n"));
    }
    if let Some(boot) = &entry.boot_id {
        head.push_str(&format!("_BOOT_ID={boot}\n"));
    }
    out.extend_from_slice(head.as_bytes());
    for (name, value) in entry.fields.iter().filter(|(name, _)| style.shows(name)) {
        out.extend_from_slice(name.as_bytes());
        if plain::is_printable(value) && memchr::memchr(b'\n', value).is_none() {
            out.push(b'=');
        } else {
            out.push(b'\n');
            out.extend_from_slice(&(value.len() as u64).to_le_bytes());
        }
        out.extend_from_slice(value);
        out.push(b'\n');
    }
    out.push(b'\n');
}
