//! Binding, with errors that name the setting to change.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;
use socket2::{Domain, Socket, Type};

/// Receive buffer asked for a datagram socket: about 80,000 messages of 200 bytes while the process is
/// busy elsewhere. Who may not administrate the network gets at most `net.core.rmem_max`.
const UDP_RECEIVE_BYTES: usize = 64 << 20;

/// Connections that may wait to be accepted. The kernel grants at most `net.core.somaxconn`.
const BACKLOG: i32 = 1024;

/// An address could not be bound.
#[derive(Debug)]
pub struct BindError {
    /// The flag that names the address, without its dashes.
    pub flag: &'static str,
    /// The address.
    pub address: SocketAddr,
    /// The system's answer.
    pub source: io::Error,
}

impl BindError {
    /// Why, in words.
    pub fn reason(&self) -> String {
        match self.source.kind() {
            io::ErrorKind::AddrInUse => "the port is in use".to_owned(),
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            _ => self.source.to_string(),
        }
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BindError {
            flag,
            address,
            source,
        } = self;
        let reason = self.reason();
        write!(f, "cannot listen on {address} (--{flag}): {reason}")?;
        match source.kind() {
            io::ErrorKind::AddrInUse => {
                write!(
                    f,
                    "; stop the program that has it, or choose another with \
                     --{flag} ADDR (port 0 takes a free one)"
                )?;
                // Commands need HTTP, and nothing else.
                match *flag {
                    "http" => Ok(()),
                    flag => write!(f, ", or none with --{flag} off"),
                }
            }
            io::ErrorKind::PermissionDenied => write!(
                f,
                "; ports below 1024 need CAP_NET_BIND_SERVICE, or choose \
                 another with --{flag} ADDR"
            ),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Listens on a TCP address; port 0 takes a free one. Gives the address that was bound, too.
///
/// # Errors
/// When the system refuses; the error names `flag`.
pub fn bind_tcp(
    flag: &'static str,
    address: SocketAddr,
) -> Result<(TcpListener, SocketAddr), BindError> {
    bind(flag, address, Type::STREAM, |socket| {
        // A restart must not wait for connections of the process before it.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)
    })
}

/// Binds a UDP address with a large receive buffer; port 0 takes a free one. Gives the address that
/// was bound, too.
///
/// # Errors
/// When the system refuses; the error names `flag`.
pub fn bind_udp(
    flag: &'static str,
    address: SocketAddr,
) -> Result<(UdpSocket, SocketAddr), BindError> {
    bind(flag, address, Type::DGRAM, |socket| {
        // A smaller buffer than asked for is no reason to fail.
        if setsockopt(socket, RcvBufForce, &UDP_RECEIVE_BYTES).is_err() {
            let _ = socket.set_recv_buffer_size(UDP_RECEIVE_BYTES);
        }
        socket.bind(&address.into())
    })
}

/// A socket that does not block, after `prepare`.
fn bind<S: From<Socket>>(
    flag: &'static str,
    address: SocketAddr,
    kind: Type,
    prepare: impl FnOnce(&Socket) -> io::Result<()>,
) -> Result<(S, SocketAddr), BindError> {
    let bound = || {
        let socket = Socket::new(Domain::for_address(address), kind, None)?;
        prepare(&socket)?;
        socket.set_nonblocking(true)?;
        let bound = socket.local_addr()?.as_socket();
        let bound = bound.ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok((socket.into(), bound))
    };
    bound().map_err(|source| BindError {
        flag,
        address,
        source,
    })
}
