//! Sockets that listen.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that wait to be accepted, for each worker.
const BACKLOG: i32 = 1024;

/// Sockets that listen on an address for a proxy, or did for one before it.
#[derive(Debug)]
pub struct ListenSockets {
    /// The address as settings have it.
    pub asked: SocketAddr,
    /// One socket for each worker of the proxy that made them.
    pub sockets: Vec<TcpListener>,
}

/// The same sockets, for somebody else.
pub(crate) fn keep(asked: SocketAddr, sockets: &[TcpListener]) -> io::Result<ListenSockets> {
    let sockets = sockets.iter().map(TcpListener::try_clone);
    let sockets = sockets.collect::<io::Result<_>>()?;
    Ok(ListenSockets { asked, sockets })
}

/// Sockets that listen on one address, at least one, among which the system divides connections: those of before, and
/// more if they are too few.
pub(crate) fn listen(
    address: SocketAddr,
    before: Vec<TcpListener>,
    count: usize,
) -> io::Result<Vec<TcpListener>> {
    let (address, mut sockets) = match before.first() {
        Some(first) => (first.local_addr()?, before),
        None => (free_address(address)?, Vec::with_capacity(count)),
    };
    while sockets.len() < count {
        let socket = socket(address)?;
        socket.set_reuse_port(true)?;
        // Connections have it from here. Without it small answers wait for acknowledgements of the ones
        // before.
        socket.set_tcp_nodelay(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        sockets.push(socket.into());
    }
    Ok(sockets)
}

/// The address with its port, if nobody listens there.
fn free_address(address: SocketAddr) -> io::Result<SocketAddr> {
    // Sockets that share an address are given it even where another program has some of the kind:
    // that this one is not is found out by asking for it alone.
    let alone = socket(address)?;
    alone.bind(&address.into())?;
    Ok(alone.local_addr()?.as_socket().unwrap_or(address))
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // Connections of a process before must not keep the next from starting.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
