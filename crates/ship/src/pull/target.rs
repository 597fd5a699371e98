//! The server that records are pushed to.

use serde::Deserialize;

use super::error::PullError;
use super::exchange::{Call, Exchange, Method, Reply};
use super::state::PushBody;

/// The level of zstd: most of the gain, for little time.
const COMPRESSION_LEVEL: i32 = 1;

/// The form of pushes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) path: &'static str,
    pub(super) content_type: &'static str,
    /// Reads an answer to a body of so many records; `None` is a refusal of everything.
    pub(super) read: fn(&Reply, u64) -> Option<Outcome>,
}

/// The result of a push.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) accepted: u64,
    pub(super) rejected: u64,
    /// Some reasons of rejections.
    pub(super) reasons: Vec<String>,
}

/// Pushes bodies to the target.
pub(super) struct TargetServer {
    exchange: Exchange,
    form: Form,
    /// True once a server has taken a body. From then on an answer of something else at its address, or about the
    /// token, is an outage.
    has_taken: bool,
}

impl TargetServer {
    pub(super) fn new(exchange: Exchange, form: Form) -> TargetServer {
        TargetServer {
            exchange,
            form,
            has_taken: false,
        }
    }

    pub(super) fn address(&self) -> String {
        self.exchange.address()
    }

    /// Pushes a body until a server has it durably.
    ///
    /// # Errors
    /// When it is refused as a whole, or no server answers.
    pub(super) fn push(&mut self, body: &PushBody) -> Result<Outcome, PullError> {
        let packed = zstd::bulk::compress(&body.bytes, COMPRESSION_LEVEL);
        let packed = packed.map_err(|error| PullError::Answer {
            address: self.address(),
            reason: format!("a body cannot be compressed: {error}"),
        })?;
        let headers = [
            ("content-type", self.form.content_type),
            ("content-encoding", "zstd"),
            ("accept", "application/json"),
        ];
        let call = Call {
            method: Method::Post(&packed),
            path: self.form.path,
            headers: &headers,
            returned: &[],
        };
        let (read, has_taken) = (self.form.read, self.has_taken);
        let is_expected = |reply: &Reply| {
            !has_taken || !is_foreign(reply.status) || read(reply, body.records).is_some()
        };
        let reply = self.exchange.send_until(call, is_expected)?;
        let outcome = read(&reply, body.records).ok_or_else(|| PullError::Refused {
            address: self.address(),
            status: reply.status,
            message: reply.message(),
            hint: hint(reply.status),
        })?;
        self.has_taken = true;
        Ok(outcome)
    }
}

/// True if a refusal with this status says nothing of the body.
fn is_foreign(status: u16) -> bool {
    matches!(status, 200..=399 | 401 | 403 | 404 | 405)
}

fn hint(status: u16) -> Option<&'static str> {
    match status {
        401 | 403 => Some("give a token with the role 'write' by --token-file or LOGPOND_TOKEN"),
        413 => Some("use a smaller --page-size"),
        _ => None,
    }
}

/// Reads the answer to a push of Loki: 400 says how many entries are stored and how many are not.
pub(super) fn read_loki(reply: &Reply, records: u64) -> Option<Outcome> {
    // A page of something else has 200.
    if reply.status == 204 {
        return Some(Outcome {
            accepted: records,
            ..Outcome::default()
        });
    }
    let text = String::from_utf8_lossy(&reply.body);
    let (accepted, rest) = text.split_once(" entries are stored, ")?;
    let (rejected, reasons) = rest.split_once(" are not: ")?;
    Some(Outcome {
        accepted: accepted.trim().parse().ok()?,
        rejected: rejected.trim().parse().ok()?,
        reasons: reasons.lines().map(str::to_owned).collect(),
    })
    .filter(|_| reply.status == 400)
}

#[derive(Deserialize)]
struct BulkAnswer {
    items: Vec<std::collections::BTreeMap<String, BulkItem>>,
}

#[derive(Deserialize)]
struct BulkItem {
    status: u16,
    #[serde(default)]
    error: Option<BulkFault>,
    #[serde(rename = "_id", default)]
    id: Option<String>,
}

#[derive(Deserialize)]
struct BulkFault {
    #[serde(default)]
    reason: String,
}

/// Reads the answer to a bulk request.
pub(super) fn read_bulk(reply: &Reply, _records: u64) -> Option<Outcome> {
    if reply.status != 200 {
        return None;
    }
    let answer: BulkAnswer = serde_json::from_slice(&reply.body).ok()?;
    let mut outcome = Outcome::default();
    for item in answer.items.iter().flat_map(|item| item.values()) {
        if matches!(item.status, 200 | 201) {
            outcome.accepted += 1;
            continue;
        }
        outcome.rejected += 1;
        let reason = item.error.as_ref().map_or("", |fault| &fault.reason);
        let id = item.id.as_deref().unwrap_or_default();
        outcome.reasons.push(format!("document {id}: {reason}"));
    }
    Some(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, body: &str) -> Reply {
        Reply {
            status,
            body: body.as_bytes().to_vec(),
            is_too_long: false,
        }
    }

    #[test]
    fn answers_to_pushes_of_loki_count() {
        let all = read_loki(&reply(204, ""), 7).unwrap();
        assert_eq!((all.accepted, all.rejected), (7, 0));
        let text = "5 entries are stored, 2 are not: entry 3: too long\nentry 4: too long\n";
        let part = read_loki(&reply(400, text), 7).unwrap();
        assert_eq!(
            (part.accepted, part.rejected, part.reasons.len()),
            (5, 2, 2)
        );
        assert_eq!(read_loki(&reply(400, "the body is no push: x"), 7), None);
        assert_eq!(read_loki(&reply(401, text), 7), None);
        assert_eq!(read_loki(&reply(200, "<html>"), 7), None);
    }

    #[test]
    fn answers_to_bulk_requests_count() {
        let text = r#"{"took":1,"errors":true,"items":[
            {"create":{"_index":"a","_id":"1","status":201}},
            {"create":{"_index":"a","_id":"2","status":400,"error":{"type":"t","reason":"too long"}}}]}"#;
        let outcome = read_bulk(&reply(200, text), 2).unwrap();
        assert_eq!((outcome.accepted, outcome.rejected), (1, 1));
        assert_eq!(outcome.reasons, ["document 2: too long"]);
        assert_eq!(read_bulk(&reply(400, text), 2), None);
        assert_eq!(read_bulk(&reply(200, "{}"), 2), None);
    }
}
