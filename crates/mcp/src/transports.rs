//! The two ways in which assistants reach the tools: one request of HTTP, and standard input and output.

use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Request, Response};
use logpond_client::Client;
use rmcp::ServiceExt;
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::handler::Handler;
use super::remote::RemoteServer;
use super::server::{Calls, Server};

/// The longest request: arguments, and what clients add to them.
pub const REQUEST_BYTES_MAX: usize = 256 << 10;

/// Answers one request of the protocol's streamable HTTP.
///
/// There are no sessions, so each request stands for itself. Names of hosts, origins and tokens were checked before.
pub async fn answer(
    request: Request<Vec<u8>>,
    server: Arc<dyn Server>,
    calls: &Calls,
) -> Response<Bytes> {
    let handler = Handler {
        server,
        calls: calls.clone(),
    };
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(REQUEST_BYTES_MAX);
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
    let request = request.map(|body| Full::new(Bytes::from(body)));
    let (parts, body) = service.handle(request).await.into_parts();
    // Answers are one JSON value, bounded by `max_characters`; its errors are none by type.
    let body = body.collect().await.map(|body| body.to_bytes());
    Response::from_parts(parts, body.unwrap_or_default())
}

/// Answers requests on standard input until it ends, by asking the server of this client.
///
/// # Errors
/// When standard input holds something else than the protocol.
pub async fn serve_stdio(client: Client) -> Result<(), String> {
    let handler = Handler {
        server: Arc::new(RemoteServer(Arc::new(client))),
        calls: Calls::default(),
    };
    let running = handler.serve(stdio()).await;
    let running = running.map_err(|error| error.to_string())?;
    let ended = running.waiting().await;
    ended.map(drop).map_err(|error| error.to_string())
}
