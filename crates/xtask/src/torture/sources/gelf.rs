//! GELF over TCP: objects that end with a zero byte, not acknowledged.

use serde_json::json;

use super::{Listener, Promise, Record, Source, lines};

pub(super) const SOURCE: Source = Source {
    name: "gelf",
    promise: Promise::Nothing,
    listener: Some(Listener {
        flag: "--gelf-tcp",
        port: 12201,
    }),
    open: |address| lines::open(address, message),
};

fn message(record: &Record) -> Vec<u8> {
    let message = json!({
        "version": "1.1", "host": "torture", "short_message": "torture",
        "_client": record.client, "_n": record.number, "_v": record.value, "_pad": record.pad
    });
    (message.to_string() + "\0").into_bytes()
}
