//! Loki's tail over a WebSocket: it is followed for a while and then left.
//!
//! New lines come some time after their acknowledgement, so an answer is never complete. The native followers
//! of the run check that nothing is missing.

use std::time::{Duration, Instant};

use super::websocket::WebSocket;
use super::{Inquiry, Interface, Rows, Told, incomplete, logql, parse};
use crate::e2e::http::encode;

pub(super) const LINES: Interface = Interface {
    name: "tail",
    is_one_view: true,
    can_be_complete: false,
    ask,
};

/// How long a tail is followed.
const STAY: Duration = Duration::from_secs(2);

/// The lines that are sent first.
const LINES_MAX: usize = 100;

fn ask(inquiry: &mut Inquiry<'_>) -> Told {
    // New lines have any number.
    inquiry.range = inquiry.range.start..u64::MAX;
    let mut rows = Rows::default();
    let query = format!(
        "{{client=\"{}\"}} | n>={} | v=~\".+\"",
        inquiry.name(),
        inquiry.range.start
    );
    let target = format!(
        "/loki/api/v1/tail?start=0&limit={LINES_MAX}&query={}",
        encode(&query)
    );
    let address = inquiry.address();
    let failed = |e: std::io::Error| format!("{address}: tail: {e}");
    let mut socket = WebSocket::open(&address, &target).map_err(failed)?;
    let since = Instant::now();
    while since.elapsed() < STAY {
        if let Some(text) = socket.read(STAY).map_err(failed)? {
            logql::add_streams(inquiry, &mut rows, &parse(&text)?["streams"])?;
        }
    }
    rows.answer(incomplete("it is followed"))
}
