//! Where operators reach a proxy.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use logpond_proxy::Control;
use tokio::net::TcpListener;

use super::configured::ConfigHandle;
use crate::cli::Proxy;
use crate::commands::Failure;
use logpond_host::hostname;
use logpond_host::shutdown::Shutdown;
use logpond_http::Hosts;
use logpond_http::proxy::{Operations, serve};
use logpond_listen::net::bind_tcp;
use logpond_settings::host_names;

/// A listener that serves nobody yet.
pub(super) struct Admin {
    listener: TcpListener,
    /// As the system gave it.
    pub(super) address: SocketAddr,
    hosts: Hosts,
}

impl Admin {
    /// Listens if that is asked for, by this socket of a process before if there is one. Within an event
    /// loop.
    ///
    /// # Errors
    /// When others could reach what has no protection, or the system refuses the address.
    pub(super) fn listen(
        args: &Proxy,
        inherited: Option<std::net::TcpListener>,
    ) -> Result<Option<Admin>, Failure> {
        let Some(address) = args.admin else {
            return Ok(None);
        };
        if !address.ip().is_loopback() && !args.insecure {
            return Err(format!(
                "other machines could reach --admin at {address}, and nothing there is encrypted or \
                 authenticated. Either stay on this machine: --admin 127.0.0.1:{}; or, in a network \
                 you trust: --insecure",
                address.port()
            )
            .into());
        }
        let (listener, address) = match inherited {
            Some(listener) => (listener.try_clone()?, listener.local_addr()?),
            None => bind_tcp("admin", address)?,
        };
        let listener = TcpListener::from_std(listener)?;
        let configured = host_names(&args.admin_host.join("\n"))?;
        let hosts = Hosts::new(hostname::own_names(), &configured, "--admin-host");
        Ok(Some(Admin {
            listener,
            address,
            hosts,
        }))
    }

    /// The same socket, for a process that is to take over.
    ///
    /// # Errors
    /// When the system has no descriptors.
    pub(super) fn socket(&self) -> io::Result<std::net::TcpListener> {
        Ok(self.listener.as_fd().try_clone_to_owned()?.into())
    }

    /// Serves until the stop.
    pub(super) async fn serve(self, control: Control, followed: ConfigHandle, shutdown: Shutdown) {
        let operated = Operations {
            control,
            hosts: self.hosts,
            reload: Box::new(move || followed.reload()),
        };
        serve(self.listener, Arc::new(operated), shutdown).await;
    }
}
