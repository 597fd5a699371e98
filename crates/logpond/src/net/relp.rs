//! The server's side of a RELP session: which transactions wait for their records, and what they are
//! answered.
//!
//! Invariant: answers come in the order of the transactions, and a message's only once it is known
//! what became of it.

use logpond_protocol::intake::relp::{self, RelpError, RelpSplitter, Sent};

use super::gather::Gather;

/// What is answered to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transaction {
    Open(u32),
    /// An open that offers no syslog messages, a message before an open, an unknown command.
    Refused(u32, &'static str),
    Message(u32),
    Close(u32),
}

/// One session.
#[derive(Debug)]
pub(super) struct RelpSession {
    splitter: RelpSplitter,
    waiting: Vec<Transaction>,
    is_open: bool,
    is_over: bool,
}

impl RelpSession {
    /// A session that cuts messages to so many bytes.
    pub(super) fn new(message_bytes_max: usize) -> RelpSession {
        RelpSession {
            splitter: RelpSplitter::new(message_bytes_max),
            waiting: Vec::new(),
            is_open: false,
            is_over: false,
        }
    }

    /// Takes bytes of the client; gives how many messages were cut.
    ///
    /// # Errors
    /// When they are no frames: the session is over then.
    pub(super) fn feed(&mut self, bytes: &[u8], gather: &mut Gather) -> Result<u64, RelpError> {
        let RelpSession {
            splitter,
            waiting,
            is_open,
            is_over,
        } = self;
        let mut cut = 0;
        let fed = splitter.feed(bytes, |sent| {
            waiting.push(match sent {
                Sent::Open {
                    number,
                    is_syslog: true,
                } => {
                    *is_open = true;
                    Transaction::Open(number)
                }
                Sent::Open { number, .. } => {
                    Transaction::Refused(number, "only commands=syslog is taken")
                }
                Sent::Message { number, .. } if !*is_open => {
                    Transaction::Refused(number, "the session was not opened")
                }
                Sent::Message {
                    number,
                    bytes,
                    truncated_bytes,
                } => {
                    match truncated_bytes {
                        // Some senders end messages as lines.
                        0 => gather.push(bytes.strip_suffix(b"\n").unwrap_or(bytes)),
                        more => {
                            cut += 1;
                            gather.push_cut(bytes, (bytes.len() + more) as u64);
                        }
                    }
                    Transaction::Message(number)
                }
                Sent::Close { number } => {
                    *is_over = true;
                    Transaction::Close(number)
                }
                Sent::Unknown { number } => Transaction::Refused(number, "unknown command"),
            });
        });
        if let Err(error) = fed {
            self.is_over = true;
            return Err(error);
        }
        Ok(cut)
    }

    /// Whether something waits to be answered.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
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
                Transaction::Message(number) if durable > 0 => {
                    durable -= 1;
                    relp::write_ok(number, &mut out);
                }
                Transaction::Message(number) => relp::write_refused(number, reason, &mut out),
                Transaction::Close(number) => relp::write_closed(number, &mut out),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::{EntryKind, Labels};

    use super::*;

    #[test]
    fn answers_come_in_order_and_say_what_became_of_messages() {
        let mut session = RelpSession::new(10);
        let mut gather = Gather::new(EntryKind::Syslog, Labels::new());
        let sent = b"1 syslog 1 x\n2 open 15 commands=syslog\n3 syslog 1 a\n4 syslog 12 0123456789ab\n5 syslog 1 c\n6 close 0\n";
        assert_eq!(session.feed(sent, &mut gather), Ok(1));
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
        let mut session = RelpSession::new(10);
        let mut gather = Gather::new(EntryKind::Syslog, Labels::new());
        assert!(session.feed(b"<13>plain syslog\n", &mut gather).is_err());
        assert!(session.is_over() && gather.is_empty());
    }
}
