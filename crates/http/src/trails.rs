//! The notes of the audit on requests.
//!
//! Invariants: requests that read records or change the server are noted, those that push or only look whether the server
//! is there are not; a request is noted once, with all questions that it asks within this process.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::Request;
use logpond_engine::audit::{AuditedEngine, QuestionSource, Trail};
use logpond_listen::tokens::Role;

use super::view::Reach;
use super::{App, params};

/// The client of a connection.
#[derive(Clone, Copy, Debug)]
struct ClientAddress(Option<IpAddr>);

/// Notes the client of the connection at a request.
pub(super) fn of_client<B>(mut request: Request<B>, client: Option<IpAddr>) -> Request<B> {
    request.extensions_mut().insert(ClientAddress(client));
    request
}

tokio::task_local! {
    /// The trail of the request that this task answers.
    static TRAIL: Option<Arc<Trail>>;
}

/// Answers a request whose body may be noted.
pub(super) async fn noted<T>(trail: Option<Arc<Trail>>, answering: impl Future<Output = T>) -> T {
    TRAIL.scope(trail, answering).await
}

/// Notes the body of the request that this task answers.
pub(super) fn note_body(bytes: &[u8]) {
    // A request that is not noted has none.
    let _ = TRAIL.try_with(|trail| {
        if let Some(trail) = trail {
            trail.text(bytes);
        }
    });
}

/// The longest path with parameters that is kept of an administration.
const PATH_BYTES_MAX: usize = 1024;

impl App {
    /// Begins to note a request to a route, if such requests are noted.
    pub(super) fn trail_of<B>(
        &self,
        request: &Request<B>,
        route: &str,
        needed: Option<Role>,
        reach: Reach,
    ) -> Option<Arc<Trail>> {
        let changes = needed == Some(Role::Admin);
        let is_noted = changes || needed == Some(Role::Read) && reach != Reach::Nothing;
        if !self.audit.is_on() || !is_noted {
            return None;
        }
        let whole = request.uri().path_and_query();
        let whole = whole.map_or("", |whole| whole.as_str());
        let client = request.extensions().get::<ClientAddress>();
        let source = QuestionSource {
            protocol: "http",
            address: client.and_then(|client| client.0),
            endpoint: format!("{} {route}", request.method()),
            changes: changes.then(|| whole.chars().take(PATH_BYTES_MAX).collect()),
        };
        let trail = Trail::begin(&self.audit, source)?;
        if let Some(query) = request.uri().query().filter(|_| !changes) {
            let query = params::of_path(query).unwrap_or_else(|_| query.to_owned());
            trail.text(query.as_bytes());
        }
        Some(Arc::new(trail))
    }

    /// Begins to note a statement of a session.
    pub fn trail_of_statement(&self, text: &str) -> Option<Arc<Trail>> {
        let source = QuestionSource {
            protocol: "postgres",
            address: self.client.address,
            endpoint: "statement".to_owned(),
            changes: None,
        };
        let trail = Trail::begin(&self.audit, source)?;
        if let Some(token) = &self.client.token {
            trail.came_with(token);
        }
        trail.text(text.as_bytes());
        Some(Arc::new(trail))
    }

    /// The server whose answers a trail notes.
    pub(super) fn noted_by(self: &Arc<App>, trail: Option<&Arc<Trail>>) -> Arc<App> {
        let Some(trail) = trail else {
            return Arc::clone(self);
        };
        let mut noted = App::clone(self);
        let engine = AuditedEngine::new(Arc::clone(&self.engine), Arc::clone(trail));
        noted.engine = Arc::new(engine);
        Arc::new(noted)
    }
}
