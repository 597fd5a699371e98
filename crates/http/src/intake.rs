//! What all ways to push over HTTP have in common: a body is received, decompressed and decoded
//! within bounds, and its records are made durable.

use std::sync::Arc;

use hyper::header::HeaderName;
use hyper::{HeaderMap, header};
use logpond_protocol::intake::body::{BodyError, Decoder, Encoding};
use logpond_record::Batch;
use logpond_segment::batches::BatchId;

use super::App;
use super::body::{self, RECEIVED_BYTES_MAX, RequestBody};
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use logpond_engine::ingest::{Acknowledgement, IngestError};
use logpond_host::telemetry::Intake;

/// How often a body waits for its turn to be decoded before it is refused.
const TURNS_MAX: usize = 16;

/// Receives a body and has it decoded on a thread for that.
pub(super) async fn decode<T: Send + 'static>(
    app: &Arc<App>,
    body: Inflow,
    encoding: Encoding,
    decode: impl FnOnce(&[u8]) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    // Before the body is sent for nothing.
    app.ingest.gate().check()?;
    let received = body::receive(body, RECEIVED_BYTES_MAX, &app.bodies).await?;
    decode_records(app, received, encoding, decode).await
}

/// Has a body of records decoded on a thread for that, once there is memory for what comes of it.
pub(super) async fn decode_records<T: Send + 'static>(
    app: &App,
    received: RequestBody,
    encoding: Encoding,
    decode: impl FnOnce(&[u8]) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    for _ in 0..TURNS_MAX {
        app.ingest.until_room().await?;
        // The next one is decoded once what comes of this one waits for the journal, and counts there.
        let _decoder = app.bodies.decoder().await;
        // Nobody waits for the disk in the place of others, who would wait for each in turn.
        if app.ingest.has_room() {
            let bytes_max = app.bodies.decoded_bytes_max();
            return decode_received(received, (encoding, bytes_max), decode).await;
        }
    }
    Err(IngestError::Busy.into())
}

/// Has a body that was received decoded on a thread for that; it may have so many bytes, decompressed.
pub(super) async fn decode_received<T: Send + 'static>(
    received: RequestBody,
    (encoding, bytes_max): (Encoding, usize),
    decode: impl FnOnce(&[u8]) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let work = move || decompress(received, (encoding, bytes_max), decode);
    let decoded = tokio::task::spawn_blocking(work).await;
    decoded.map_err(|e| ApiError::new(Kind::Internal, e.to_string()))?
}

fn decompress<T>(
    received: RequestBody,
    (encoding, bytes_max): (Encoding, usize),
    decode: impl FnOnce(&[u8]) -> Result<T, ApiError>,
) -> Result<T, ApiError> {
    if encoding == Encoding::Identity {
        return decode(&received.bytes);
    }
    let mut decoder = Decoder::new(encoding, bytes_max).map_err(body_error)?;
    decoder.write(&received.bytes).map_err(body_error)?;
    drop(received);
    let bytes = decoder.finish().map_err(body_error)?;
    decode(&bytes)
}

fn body_error(error: BodyError) -> ApiError {
    let kind = match error {
        BodyError::TooLong(_)
        | BodyError::TooDense
        | BodyError::Members
        | BodyError::Crumbs
        | BodyError::Dictionary(_) => Kind::BodyTooLarge,
        BodyError::Corrupt(_) => Kind::BadRequest,
    };
    ApiError::new(kind, error.to_string())
}

/// Hands a batch to the journal, and counts it.
pub(super) async fn submit(
    app: &Arc<App>,
    intake: Intake,
    batch: Batch,
    id: Option<BatchId>,
    durable: bool,
) -> Result<Acknowledgement, ApiError> {
    let (records, bytes) = (batch.len(), batch.payload().len());
    let accepted = app.ingest.submit_named(batch, id, durable).await?;
    let metrics = app.metrics.intake(intake);
    metrics.records.add(records as u64);
    metrics.bytes.add(bytes as u64);
    Ok(accepted)
}

/// How the body is compressed.
pub(super) fn encoding(headers: &HeaderMap) -> Result<Encoding, ApiError> {
    encoding_among(headers, Encoding::from_header, "gzip, deflate, zstd")
}

/// The same where other encodings are taken: how their names are read, and what they are.
pub(super) fn encoding_among(
    headers: &HeaderMap,
    read: fn(&str) -> Option<Encoding>,
    taken: &str,
) -> Result<Encoding, ApiError> {
    let given = text_of(headers, header::CONTENT_ENCODING)?;
    read(given).ok_or_else(|| {
        let message = format!("content encoding {given} is not taken; send {taken} or none");
        ApiError::new(Kind::UnsupportedEncoding, message)
    })
}

/// The text of a header; empty if it is not there.
pub(super) fn text_of(headers: &HeaderMap, name: HeaderName) -> Result<&str, ApiError> {
    let text = headers.get(&name).map_or(Ok(""), |value| value.to_str());
    text.map_err(|_| ApiError::bad_request(format!("header {name} is not ASCII text")))
}
