//! Raw lines over TCP, not acknowledged.

use super::{Listener, Promise, Source, lines};

pub(super) const SOURCE: Source = Source {
    name: "fast",
    promise: Promise::Nothing,
    listener: Some(Listener {
        flag: "--fast",
        port: 7651,
    }),
    open: |address| lines::open(address, |record| (record.object() + "\n").into_bytes()),
};
