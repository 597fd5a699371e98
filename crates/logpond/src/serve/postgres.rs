//! The listener for clients of Postgres, if the settings name an address: composition only.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use tokio::task::JoinSet;

use super::ServeError;
use logpond_http::App;
use logpond_listen::net;
use logpond_listen::net::tls::Acceptor;
use logpond_settings::Settings;

/// Binds the listener.
pub(super) fn bind(settings: &Settings) -> Result<Option<(TcpListener, SocketAddr)>, ServeError> {
    let Some(address) = settings.postgres else {
        return Ok(None);
    };
    if cfg!(not(feature = "sql")) {
        return Err(ServeError::NoSql);
    }
    let bound = net::bind_tcp("postgres", address);
    bound.map(Some).map_err(ServeError::Bind)
}

/// Serves its connections until the stop.
#[cfg(feature = "sql")]
pub(super) fn serve(
    tasks: &mut JoinSet<()>,
    bound: Option<(TcpListener, SocketAddr)>,
    (app, tls): (&Arc<App>, &Option<Arc<Acceptor>>),
    context: net::Context,
) -> io::Result<()> {
    use logpond_postgres::{PostgresServer, serve_accepted};

    let Some((listener, _)) = bound else {
        return Ok(());
    };
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let server = PostgresServer::new(Arc::clone(app), tls.clone());
    let serve = move |stream, peer, context| serve_accepted(stream, peer, context, server.clone());
    tasks.spawn(net::accept(listener, context, net::CONNECTIONS_MAX, serve));
    Ok(())
}

/// There is none.
#[cfg(not(feature = "sql"))]
pub(super) fn serve(
    _: &mut JoinSet<()>,
    _: Option<(TcpListener, SocketAddr)>,
    _: (&Arc<App>, &Option<Arc<Acceptor>>),
    _: net::Context,
) -> io::Result<()> {
    Ok(())
}
