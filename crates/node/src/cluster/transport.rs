//! Membership messages as HTTP calls: what chitchat sends goes through the same authenticated port
//! as everything else between nodes.
//!
//! Messages may get lost, late or doubled; chitchat is made for that. So nothing here waits for a
//! node that does not take its messages.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use chitchat::transport::{Socket, Transport};
use chitchat::{ChitchatMessage, Deserializable, Serializable};
use tokio::sync::mpsc;

/// Messages that wait to be sent. A node talks to three others in each round and answers as many.
const OUTGOING_MAX: usize = 64;

/// Messages that wait to be read.
const INCOMING_MAX: usize = 64;

/// A message on its way.
pub(super) type Letter = (SocketAddr, Vec<u8>);

/// The ends of a transport that the rest of the node holds.
#[derive(Clone)]
pub struct Mail {
    incoming: mpsc::Sender<Letter>,
}

impl Mail {
    /// Hands in a message of another node. If too many wait, it is lost.
    pub fn receive(&self, from: SocketAddr, message: Vec<u8>) {
        let _ = self.incoming.try_send((from, message));
    }
}

/// The transport that chitchat is given.
pub struct HttpTransport {
    outgoing: SyncSender<Letter>,
    incoming: Arc<Mutex<Option<mpsc::Receiver<Letter>>>>,
}

/// A transport; what it sends is to be taken from the receiver.
pub fn mail() -> (HttpTransport, Mail, Receiver<Letter>) {
    let (outgoing, to_send) = sync_channel(OUTGOING_MAX);
    let (incoming, received) = mpsc::channel(INCOMING_MAX);
    let transport = HttpTransport {
        outgoing,
        incoming: Arc::new(Mutex::new(Some(received))),
    };
    (transport, Mail { incoming }, to_send)
}

#[async_trait::async_trait]
impl Transport for HttpTransport {
    async fn open(&self, _: SocketAddr) -> anyhow::Result<Box<dyn Socket>> {
        let incoming = self
            .incoming
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let incoming = incoming.ok_or_else(|| anyhow::anyhow!("the transport is in use"))?;
        Ok(Box::new(HttpSocket {
            outgoing: self.outgoing.clone(),
            incoming,
        }))
    }
}

struct HttpSocket {
    outgoing: SyncSender<Letter>,
    incoming: mpsc::Receiver<Letter>,
}

#[async_trait::async_trait]
impl Socket for HttpSocket {
    async fn send(&mut self, to: SocketAddr, message: ChitchatMessage) -> anyhow::Result<()> {
        match self.outgoing.try_send((to, message.serialize_to_vec())) {
            Err(TrySendError::Disconnected(_)) => anyhow::bail!("nobody sends any more"),
            Ok(()) | Err(TrySendError::Full(_)) => Ok(()),
        }
    }

    async fn recv(&mut self) -> anyhow::Result<(SocketAddr, ChitchatMessage)> {
        loop {
            let Some((from, message)) = self.incoming.recv().await else {
                anyhow::bail!("nobody receives any more");
            };
            // What is no message of chitchat is none.
            if let Ok(message) = ChitchatMessage::deserialize(&mut &message[..]) {
                return Ok((from, message));
            }
        }
    }
}
