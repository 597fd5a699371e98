//! The state that retention keeps for the next start of the server: `docs/format/retention.md` is normative.
//!
//! It is a hint that is never trusted over files: without it the newest record says what time it was.

use logpond_cluster::expiry::Doubt;
use logpond_record::Timestamp;
use logpond_segment::retain::hold::{HoldState, Limits};

/// The directory.
pub(super) const DIRECTORY: &str = "retention";

/// The file.
pub(super) const PATH: &str = "retention/state";

/// The first line.
const HEADER: &str = "logpond retention 1";

/// The longest text; a longer one is none of ours.
pub(super) const BYTES_MAX: u64 = 4 << 10;

/// The state for the next process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// The kernel's name of the boot it was written in.
    pub(super) boot: String,
    /// How long that boot had lasted, in milliseconds.
    pub(super) uptime_ms: u64,
    /// The time that ages counted up to.
    pub(super) reached: Timestamp,
    /// The doubt about the clock.
    pub(super) doubt: Option<Doubt>,
    /// Limits that wait.
    pub(super) held: Option<HoldState>,
}

impl State {
    /// As [`State::encode`] has said it; `None` if that is something else.
    pub(super) fn decode(bytes: &[u8]) -> Option<State> {
        let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
        let mut lines = text.split('\n');
        if lines.next()? != HEADER {
            return None;
        }
        let boot = lines.next()?.strip_prefix("boot ")?.to_owned();
        let uptime_ms = lines.next()?.strip_prefix("uptime_ms ")?.parse().ok()?;
        let reached = lines.next()?.strip_prefix("reached_ns ")?.parse().ok()?;
        let mut state = State {
            boot,
            uptime_ms,
            reached: Timestamp(reached),
            doubt: None,
            held: None,
        };
        for line in lines {
            let mut words = line.split(' ');
            match words.next()? {
                "doubt" => {
                    state.doubt = Some(Doubt {
                        ahead_ns: words.next()?.parse().ok()?,
                        waited_ms: words.next()?.parse().ok()?,
                    });
                }
                "hold" => {
                    let limits = Limits {
                        age_ns: or_off(words.next()?)?,
                        size_bytes: or_off(words.next()?)?,
                    };
                    let waited_ms = words.next()?.parse().ok()?;
                    state.held = Some(HoldState { limits, waited_ms });
                }
                _ => return None,
            }
            if words.next().is_some() {
                return None;
            }
        }
        Some(state)
    }

    /// The text of the file.
    pub(super) fn encode(&self) -> String {
        let mut text = format!(
            "{HEADER}\nboot {}\nuptime_ms {}\nreached_ns {}\n",
            self.boot, self.uptime_ms, self.reached.0
        );
        if let Some(doubt) = &self.doubt {
            text.push_str(&format!("doubt {} {}\n", doubt.ahead_ns, doubt.waited_ms));
        }
        if let Some(held) = &self.held {
            let age = held
                .limits
                .age_ns
                .map_or("off".to_owned(), |ns| ns.to_string());
            let size = held.limits.size_bytes;
            let size = size.map_or("off".to_owned(), |bytes| bytes.to_string());
            text.push_str(&format!("hold {age} {size} {}\n", held.waited_ms));
        }
        text
    }
}

/// A number, or nothing where there is no limit; `None` if it is neither.
fn or_off<N: std::str::FromStr>(word: &str) -> Option<Option<N>> {
    match word {
        "off" => Some(None),
        number => number.parse().ok().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: &str = include_str!("../../../../../testdata/retention/v1.state");

    #[test]
    fn what_is_kept_comes_back() {
        let state = State {
            boot: "b-1".to_owned(),
            uptime_ms: 5_000,
            reached: Timestamp(1_700_000_000_000_000_000),
            doubt: Some(Doubt {
                ahead_ns: 3_456_000_000_000_000,
                waited_ms: 60_000,
            }),
            held: Some(HoldState {
                limits: Limits {
                    age_ns: Some(2_592_000_000_000_000),
                    size_bytes: None,
                },
                waited_ms: 120_000,
            }),
        };
        assert_eq!(state.encode(), KEPT);
        assert_eq!(State::decode(KEPT.as_bytes()), Some(state.clone()));
        let plain = State {
            doubt: None,
            held: None,
            ..state
        };
        assert_eq!(State::decode(plain.encode().as_bytes()), Some(plain));
    }

    #[test]
    fn anything_else_is_nothing() {
        let unended = &KEPT[..KEPT.len() - 1];
        let further = format!("{KEPT}more 1\n");
        let wide = KEPT.replace(" 60000", " 60000 1");
        let other = KEPT.replace("retention 1", "retention 2");
        for text in ["", "\n", unended, &further, &wide, &other] {
            assert_eq!(State::decode(text.as_bytes()), None, "{text:?}");
        }
    }
}
