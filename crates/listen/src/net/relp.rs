//! The server's side of a RELP session: which transactions wait for their records, and what they are
//! answered.
//!
//! Invariant: answers come in the order of the transactions, and a message's only once it is known
//! what became of it. What a client sends again because it does not know that is not stored again.

mod peers;

use logpond_protocol::intake::relp::{self, RelpCommand, RelpError, RelpSplitter};
use logpond_protocol::intake::resent::Fingerprint;

pub(super) use peers::Peer;
pub use peers::Peers;

use super::gather::Gather;

/// What is answered to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transaction {
    Open(u32),
    /// An open that offers no syslog messages, a message before an open, an unknown command.
    Refused(u32, &'static str),
    Message(u32, Option<Fingerprint>),
    /// A message that was stored before.
    Resent(u32),
    Close(u32),
}

/// Transactions that wait before all of them are answered: those that are no messages make no batch.
const WAITING_MAX: usize = 16_384;

/// Numbers of messages by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MessageCounts {
    /// Messages that were cut.
    pub(super) cut: u64,
    /// Messages that were stored before.
    pub(super) resent: u64,
}

/// One session.
pub(super) struct RelpSession {
    splitter: RelpSplitter,
    peer: Peer,
    waiting: Vec<Transaction>,
    is_open: bool,
    is_over: bool,
}

impl RelpSession {
    /// A session that cuts messages to so many bytes.
    pub(super) fn new(message_bytes_max: usize, peer: Peer) -> RelpSession {
        RelpSession {
            splitter: RelpSplitter::new(message_bytes_max),
            peer,
            waiting: Vec::new(),
            is_open: false,
            is_over: false,
        }
    }

    /// Takes bytes of the client.
    ///
    /// # Errors
    /// When they are no frames: the session is over then.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        gather: &mut Gather,
    ) -> Result<MessageCounts, RelpError> {
        let RelpSession {
            splitter,
            peer,
            waiting,
            is_open,
            is_over,
        } = self;
        let mut taken = MessageCounts::default();
        let fed = splitter.feed(bytes, |sent| {
            waiting.push(match sent {
                RelpCommand::Open {
                    number,
                    is_syslog: true,
                } => {
                    *is_open = true;
                    Transaction::Open(number)
                }
                RelpCommand::Open { number, .. } => {
                    Transaction::Refused(number, "only commands=syslog is taken")
                }
                RelpCommand::Message { number, .. } if !*is_open => {
                    Transaction::Refused(number, "the session was not opened")
                }
                RelpCommand::Message {
                    number,
                    bytes,
                    truncated_bytes,
                } => {
                    // Some senders end messages as lines.
                    let message = bytes.strip_suffix(b"\n").unwrap_or(bytes);
                    match truncated_bytes {
                        0 if peer.is_resent(message) => {
                            taken.resent += 1;
                            Transaction::Resent(number)
                        }
                        0 => {
                            gather.push(message);
                            Transaction::Message(number, Some(Fingerprint::of(message)))
                        }
                        more => {
                            taken.cut += 1;
                            gather.push_cut(bytes, (bytes.len() + more) as u64);
                            Transaction::Message(number, None)
                        }
                    }
                }
                RelpCommand::Close { number } => {
                    *is_over = true;
                    Transaction::Close(number)
                }
                RelpCommand::Unknown { number } => Transaction::Refused(number, "unknown command"),
            });
        });
        if let Err(error) = fed {
            self.is_over = true;
            return Err(error);
        }
        Ok(taken)
    }

    /// Waits for earlier sessions of the same client, before anything is read.
    pub(super) async fn wait_for_earlier(&mut self) {
        self.peer.wait_for_earlier().await;
    }

    /// A later session of the same client waits for this one to read on.
    pub(super) async fn awaited(&self) {
        self.peer.awaited().await;
    }

    /// Messages are on their way to the disk, until they are answered.
    pub(super) fn note_storing(&self) {
        self.peer.note_storing();
    }

    /// There is nothing to read, and nothing waits.
    pub(super) fn note_idle(&self) {
        self.peer.note_settled();
    }

    /// The connection has ended, in whichever way.
    pub(super) fn end(&mut self) {
        self.peer.end();
    }

    /// Whether something waits to be answered.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// True if so much waits that it is answered before more is read.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    /// Bytes of a frame that is not whole yet.
    pub(super) fn held_bytes(&self) -> usize {
        self.splitter.held_bytes()
    }

    /// Whether the session has ended once everything is answered.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The answers to what waits: the first `durable` messages are, the others are not, for this
    /// reason.
    pub(super) fn answers(&mut self, durable: u64, reason: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let mut durable = durable;
        for transaction in self.waiting.drain(..) {
            match transaction {
                Transaction::Open(number) => relp::write_opened(number, &mut out),
                Transaction::Refused(number, reason) => {
                    relp::write_refused(number, reason, &mut out);
                }
                Transaction::Resent(number) => relp::write_ok(number, &mut out),
                Transaction::Message(number, fingerprint) if durable > 0 => {
                    durable -= 1;
                    if let Some(fingerprint) = fingerprint {
                        self.peer.add(fingerprint);
                    }
                    relp::write_ok(number, &mut out);
                }
                Transaction::Message(number, _) => relp::write_refused(number, reason, &mut out),
                Transaction::Close(number) => {
                    self.peer.knows_all();
                    relp::write_closed(number, &mut out);
                }
            }
        }
        self.peer.note_settled();
        out
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use logpond_record::{EntryKind, Labels};

    use super::*;

    fn session(message_bytes_max: usize, peers: &Arc<Peers>) -> RelpSession {
        RelpSession::new(message_bytes_max, Peer::new("ash".into(), peers.clone()))
    }

    #[test]
    fn answers_come_in_order_and_say_what_became_of_messages() {
        let mut session = session(10, &Arc::default());
        let mut gather = Gather::new(EntryKind::Syslog, Labels::new());
        let sent = b"1 syslog 1 x\n2 open 15 commands=syslog\n3 syslog 1 a\n4 syslog 12 0123456789ab\n5 syslog 1 c\n6 close 0\n";
        let taken = MessageCounts { cut: 1, resent: 0 };
        assert_eq!(session.feed(sent, &mut gather), Ok(taken));
        assert!(session.has_waiting() && session.is_over());
        let stored: usize = gather.take().iter().map(|batch| batch.len()).sum();
        assert_eq!(stored, 3);
        let said = String::from_utf8(session.answers(2, "the disk is full")).unwrap();
        assert_eq!(
            said,
            "1 rsp 30 500 the session was not opened\n\
             2 rsp 59 200 OK\nrelp_version=0\nrelp_software=logpond\ncommands=syslog\n\
             3 rsp 6 200 OK\n4 rsp 6 200 OK\n5 rsp 20 500 the disk is full\n\
             6 rsp 0\n0 serverclose 0\n"
        );
        assert!(!session.has_waiting());
    }

    #[test]
    fn what_is_no_relp_ends_the_session() {
        let mut session = session(10, &Arc::default());
        let mut gather = Gather::new(EntryKind::Syslog, Labels::new());
        assert!(session.feed(b"<13>plain syslog\n", &mut gather).is_err());
        assert!(session.is_over() && gather.is_empty());
    }

    /// A session with messages of these numbers.
    fn frames(numbers: std::ops::Range<u32>, is_closed: bool) -> String {
        let mut sent = String::from("1 open 15 commands=syslog\n");
        for number in numbers {
            let message = format!("<13>1 2026-03-02T00:00:00.{number:06}Z ash app - - - x");
            sent.push_str(&format!(
                "{} syslog {} {message}\n",
                number + 2,
                message.len()
            ));
        }
        if is_closed {
            sent.push_str("99999 close 0\n");
        }
        sent
    }

    /// Sends messages of these numbers, of which so many are stored; gives how many were known.
    fn send(
        peers: &Arc<Peers>,
        numbers: std::ops::Range<u32>,
        durable: u64,
        is_closed: bool,
    ) -> u64 {
        let sent = frames(numbers, is_closed);
        let mut session = session(1000, peers);
        let mut gather = Gather::new(EntryKind::Syslog, Labels::new());
        let taken = session.feed(sent.as_bytes(), &mut gather).unwrap();
        session.answers(durable, "no");
        session.end();
        taken.resent
    }

    #[test]
    fn what_a_client_sends_again_is_known_unless_it_was_told() {
        let peers = Arc::default();
        assert_eq!(send(&peers, 0..10, 7, false), 0);
        assert_eq!(send(&peers, 3..12, 5, false), 4, "3 to 6 were stored");
        assert_eq!(send(&peers, 11..13, 1, true), 1);
        assert_eq!(send(&peers, 13..15, 2, true), 0);
        assert_eq!(send(&peers, 13..15, 0, true), 0, "its client was told");
        let mut open = session(1000, &peers);
        let mut gather = Gather::new(EntryKind::Syslog, Labels::new());
        let sent = frames(20..22, false);
        open.feed(sent.as_bytes(), &mut gather).unwrap();
        open.answers(2, "no");
        assert_eq!(send(&peers, 20..22, 0, true), 2, "it has no end yet");
    }
}
