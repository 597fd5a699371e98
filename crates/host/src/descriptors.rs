//! Descriptors beside messages (`SCM_RIGHTS`, unix(7)).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;

use nix::sys::socket::{ControlMessage, MsgFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix,
};

/// Sends a message, with a descriptor beside it if there is one; never waits for room.
///
/// # Errors
/// `WouldBlock` if there is none, and whatever the system says.
pub fn send(
    socket: impl AsFd,
    to: Option<&SocketAddrUnix>,
    bytes: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    send_by(socket, to, bytes, descriptor, SendFlags::DONTWAIT)
}

/// The same; waits for room, as long as the socket does.
pub fn send_patiently(
    socket: impl AsFd,
    to: Option<&SocketAddrUnix>,
    bytes: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    send_by(socket, to, bytes, descriptor, SendFlags::empty())
}

fn send_by(
    socket: impl AsFd,
    to: Option<&SocketAddrUnix>,
    bytes: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
    flags: SendFlags,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    if !descriptors.is_empty() {
        // The space is for one.
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let (parts, flags) = ([IoSlice::new(bytes)], flags | SendFlags::NOSIGNAL);
    match to {
        Some(to) => rustix::net::sendmsg_addr(socket, to, &parts, &mut control, flags)?,
        None => rustix::net::sendmsg(socket, &parts, &mut control, flags)?,
    };
    Ok(())
}

/// Receives a message into `buffer`, and the descriptor beside it. No bytes are the end.
///
/// # Errors
/// Also when the message is longer than the buffer.
pub fn receive(
    socket: impl AsFd,
    buffer: &mut [u8],
    flags: RecvFlags,
) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = rustix::net::recvmsg(socket, &mut parts, &mut control, flags)?;
    if received.flags.contains(rustix::net::ReturnFlags::TRUNC) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut descriptor = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
            descriptor = descriptors.next();
        }
    }
    Ok((received.bytes, descriptor))
}

/// Owns a descriptor that the process was started with, and is known by its number only: it is sent
/// through a socket, since what comes out there is owned, and closed.
///
/// # Errors
/// When there is none of that number, or the system refuses.
pub(crate) fn own(number: RawFd) -> io::Result<OwnedFd> {
    let (near, far) = UnixDatagram::pair()?;
    let descriptors = [number];
    let control = [ControlMessage::ScmRights(&descriptors)];
    let parts = [IoSlice::new(b"?")];
    nix::sys::socket::sendmsg::<()>(near.as_raw_fd(), &parts, &control, MsgFlags::empty(), None)?;
    let (_, owned) = receive(&far, &mut [0], RecvFlags::empty())?;
    nix::unistd::close(number)?;
    owned.ok_or_else(|| io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::IntoRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn descriptors_come_with_messages() {
        let (near, far) = UnixDatagram::pair().unwrap();
        let (mut one_end, other_end) = UnixStream::pair().unwrap();
        send(&near, None, b"with", Some(other_end.as_fd())).unwrap();
        send(&near, None, b"without", None).unwrap();
        drop(other_end);
        let mut buffer = [0; 8];
        let (bytes, descriptor) = receive(&far, &mut buffer, RecvFlags::empty()).unwrap();
        assert_eq!(&buffer[..bytes], b"with");
        one_end.write_all(b"there").unwrap();
        drop(one_end);
        let mut text = String::new();
        let mut received = File::from(descriptor.unwrap());
        received.read_to_string(&mut text).unwrap();
        assert_eq!(text, "there");
        let (bytes, descriptor) = receive(&far, &mut buffer, RecvFlags::empty()).unwrap();
        assert_eq!(
            (&buffer[..bytes], descriptor.is_none()),
            (&b"without"[..], true)
        );
        let empty = receive(&far, &mut buffer, RecvFlags::DONTWAIT).map(|_| ());
        assert_eq!(empty.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        send(&near, None, b"it is too long", None).unwrap();
        let long = receive(&far, &mut buffer, RecvFlags::empty()).map(|_| ());
        assert_eq!(long.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_number_becomes_a_descriptor() {
        let (mut one_end, other_end) = UnixStream::pair().unwrap();
        let mut owned = File::from(own(other_end.into_raw_fd()).unwrap());
        one_end.write_all(b"x").unwrap();
        let mut byte = [0];
        owned.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
        drop(owned);
        // Nobody else has it.
        let broken = one_end.write_all(b"x").unwrap_err();
        assert_eq!(broken.kind(), io::ErrorKind::BrokenPipe);
        assert!(own(1 << 20).is_err());
    }
}
