//! Records of connections, as `logpond proxy` writes them.

use logpond_record::cast;
use serde_json::json;

use super::{Moment, RFC3339_MS};

pub(super) fn ordinary(moment: &mut Moment<'_>, out: &mut Vec<u8>) {
    let draw = &mut moment.draw;
    let network = draw.pick(&["203.0.113", "198.51.100", "192.0.2"]);
    let client = format!("{network}.{}", draw.skewed(250) + 1);
    let port = draw.between(1024, 65_000);
    let handshake_ms = draw.skewed(80);
    let took_ms = draw.skewed(60_000);
    let (from, to) = (draw.skewed(9000), draw.skewed(400_000));
    let is_resumed = draw.below(3) > 0;
    let close_reason = match draw.below(1000) {
        0..=4 => "handshake_failed",
        5..=9 => "client_reset",
        10..=300 => "upstream",
        _ => "client",
    };
    let mut record = json!({
        "time": moment.time(RFC3339_MS),
        "frontend": "shop",
        "client": client,
        "client_port": port,
        "sni": "shop.example.com",
    });
    let more = match close_reason {
        "handshake_failed" => json!({
            "close_reason": close_reason,
            "error": "the client offers no protocol version that is allowed",
            "bytes_from_client": 0,
            "bytes_to_client": 0,
        }),
        _ => json!({
            "alpn": "http/1.1",
            "version": "TLSv1.3",
            "cipher": "TLS13_AES_256_GCM_SHA384",
            "resumed": is_resumed,
            "upstream": "tcp:127.0.0.1:8080",
            "close_reason": close_reason,
            "bytes_from_client": from,
            "bytes_to_client": to,
            "handshake_s": cast::float(handshake_ms) / 1000.0,
            "duration_s": cast::float(took_ms) / 1000.0,
        }),
    };
    if let (Some(record), serde_json::Value::Object(more)) = (record.as_object_mut(), more) {
        record.extend(more);
    }
    out.extend_from_slice(record.to_string().as_bytes());
    out.push(b'\n');
}
