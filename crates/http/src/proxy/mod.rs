//! The HTTP face of the TLS proxy, for operators: its metrics, its clients, its upstreams.
//!
//! Invariants: it has connections of its own, few of them, and waits for nothing that clients of the
//! proxy do; it changes nothing but what files say.

mod clients;
mod metrics;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use logpond_proxy::Control;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::body::Body;
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::params::Params;
use super::router::refuse_method;
use super::{Hosts, check_program, health, serve_connection};
use logpond_host::shutdown::Shutdown;
use logpond_listen::net;

/// Connections of operators at a time; further ones wait.
const CONNECTIONS_MAX: usize = 32;

/// How long nobody is accepted after somebody could not be.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The operations of the administration interface.
pub struct Operations {
    /// The proxy.
    pub control: Control,
    /// The names under which it may be asked.
    pub hosts: Hosts,
    /// Reads settings and certificates again; says what is wrong with them. May block.
    pub reload: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Clients,
    Upstreams,
    Metrics,
    Reload,
    Healthy,
    Ready,
}

const READ: &[Method] = &[Method::GET, Method::HEAD];
const ACT: &[Method] = &[Method::POST];

const ROUTES: [(&str, &[Method], Endpoint); 6] = [
    ("/api/v1/proxy/clients", READ, Endpoint::Clients),
    ("/api/v1/proxy/upstreams", READ, Endpoint::Upstreams),
    ("/metrics", READ, Endpoint::Metrics),
    ("/-/reload", ACT, Endpoint::Reload),
    ("/-/healthy", READ, Endpoint::Healthy),
    ("/-/ready", READ, Endpoint::Ready),
];

/// Serves until the stop.
pub async fn serve(listener: TcpListener, operated: Arc<Operations>, shutdown: Shutdown) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut stop = shutdown.clone();
    loop {
        let accepted = tokio::select! {
            accepted = net::next(&listener, &slots) => accepted,
            () = stop.stopping() => return,
        };
        let Ok((slot, stream, _)) = accepted else {
            // It is gone already, or descriptors are scarce.
            tokio::time::sleep(RETRY_PAUSE).await;
            continue;
        };
        let (operated, of_shutdown) = (operated.clone(), shutdown.clone());
        tokio::spawn(async move {
            let of_requests = of_shutdown.clone();
            let service = service_fn(move |request| {
                let answer = answer(operated.clone(), of_requests.clone(), request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            serve_connection(stream, of_shutdown, service).await;
            drop(slot);
        });
    }
}

async fn answer(
    operated: Arc<Operations>,
    shutdown: Shutdown,
    request: Request<Inflow>,
) -> Response<Body> {
    if let Err(error) = check_program(&operated.hosts, &request) {
        return error.into_response();
    }
    let path = request.uri().path();
    let Some((_, methods, endpoint)) = ROUTES.iter().find(|(route, ..)| *route == path) else {
        let known = ROUTES.map(|(route, ..)| route).join(", ");
        let message = format!("there is no {path}; what there is: {known}");
        return ApiError::new(Kind::NotFound, message).into_response();
    };
    if !methods.contains(request.method()) {
        let allowed: Vec<&str> = methods.iter().map(Method::as_str).collect();
        return refuse_method(path, request.method(), &allowed);
    }
    let answered = act(*endpoint, operated, &shutdown, &request).await;
    answered.unwrap_or_else(ApiError::into_response)
}

async fn act(
    endpoint: Endpoint,
    operated: Arc<Operations>,
    shutdown: &Shutdown,
    request: &Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    let params = Params::of(request.uri())?;
    match endpoint {
        Endpoint::Clients => clients::answer(&operated.control, &params),
        Endpoint::Upstreams => {
            params.only(&[])?;
            let upstreams = json!({ "upstreams": operated.control.upstreams() });
            Ok(Body::json(StatusCode::OK, &upstreams))
        }
        Endpoint::Metrics => metrics::answer(operated).await,
        Endpoint::Reload => {
            let read = blocking(move || (operated.reload)()).await?;
            read.map_err(|error| ApiError::new(Kind::Conflict, error))?;
            Ok(Body::json(StatusCode::OK, &json!({ "status": "reloaded" })))
        }
        Endpoint::Healthy => Ok(health::healthy()),
        Endpoint::Ready => Ok(health::ready(shutdown, &net::ListenerStatus::default())),
    }
}

/// Does what may wait for the disk where that holds nobody up.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ApiError::new(Kind::Internal, error.to_string()))
}
