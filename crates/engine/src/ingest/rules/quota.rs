//! How much a source may send within a window of time.
//!
//! Invariants:
//! - Windows are fixed: they begin at whole multiples of their length since 1970.
//! - Within a window no more of a source is let in than its quota says, and what is not let in is counted
//!   exactly, records and bytes.
//! - Sources beyond [`SOURCES_MAX`] share one.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use logpond_record::{Record, Timestamp};
use logpond_search::Matcher;

use super::counters::QuotaCounters;
use super::locked;
use super::losses::{self, Loss};

/// The most sources of a quota within a window that are told apart: the machines of a large site, in a few
/// megabytes.
pub(super) const SOURCES_MAX: usize = 10_000;

/// How much of a value tells sources apart.
const VALUE_BYTES_MAX: usize = 256;

/// A quota as its file says it.
#[derive(Clone, Debug)]
pub(super) struct QuotaDefinition {
    pub(super) name: Box<str>,
    /// The filter as it was written.
    pub(super) filter: Option<String>,
    pub(super) matcher: Option<Matcher>,
    /// Fields whose values make a source.
    pub(super) by: Vec<Box<str>>,
    pub(super) records_max: Option<u64>,
    pub(super) bytes_max: Option<u64>,
    /// Length of a window in nanoseconds.
    pub(super) window_ns: i64,
}

/// Who sends.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Source {
    /// Whose fields have these values, in the order of the quota's `by`; `None` where there is none.
    Of(Box<[Option<Box<str>>]>),
    /// All whom there was no room for.
    Others,
}

/// Records and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) records: u64,
    pub(super) bytes: u64,
}

impl Usage {
    pub(super) fn add(&mut self, other: Usage) {
        self.records += other.records;
        self.bytes += other.bytes;
    }

    fn subtract(&mut self, other: Usage) {
        self.records = self.records.saturating_sub(other.records);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

/// Where something was counted: the number of the window, and the source.
pub(super) type Place = (i64, Source);

/// A quota that is applied.
#[derive(Debug)]
pub(super) struct Quota {
    pub(super) definition: QuotaDefinition,
    pub(super) counters: Arc<QuotaCounters>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    window: i64,
    taken: HashMap<Source, Usage>,
    lost: BTreeMap<Place, Usage>,
}

impl Quota {
    /// The quota with what that of its name counted before it, if there is one.
    pub(super) fn new(definition: QuotaDefinition, before: Option<&Quota>) -> Quota {
        Quota {
            counters: before
                .map(|before| before.counters.clone())
                .unwrap_or_default(),
            state: match before {
                Some(before) if before.definition.is_alike(&definition) => before.state.clone(),
                _ => Arc::default(),
            },
            definition,
        }
    }

    /// What is left to tell of it when no other goes on with it.
    pub(super) fn retired(&self) -> RetiredQuota {
        RetiredQuota {
            definition: self.definition.clone(),
            state: self.state.clone(),
        }
    }

    /// Whether another one goes on with what this has counted.
    pub(super) fn is_continued_by(&self, other: &Quota) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Who sent a record.
    pub(super) fn source_of(&self, record: &Record<'_>) -> Source {
        let value = |name: &str| {
            let text = record.field(name)?.to_text();
            let text = String::from_utf8_lossy(&text);
            Some(text[..text.floor_char_boundary(VALUE_BYTES_MAX)].into())
        };
        Source::Of(self.definition.by.iter().map(|name| value(name)).collect())
    }

    /// Takes room for a record of a source. Gives where it was taken, or would have been, and whether
    /// there was room.
    pub(super) fn take(&self, source: Source, bytes: u64, now: Timestamp) -> (Place, bool) {
        let mut state = locked(&self.state);
        // A clock that is set back begins no window anew.
        let window = now
            .0
            .div_euclid(self.definition.window_ns)
            .max(state.window);
        if window > state.window {
            state.window = window;
            state.taken.clear();
        }
        let is_full = state.taken.len() >= SOURCES_MAX && !state.taken.contains_key(&source);
        let source = if is_full { Source::Others } else { source };
        let taken = state.taken.entry(source.clone()).or_default();
        let fits = |taken: u64, more: u64, max: Option<u64>| {
            max.is_none_or(|max| taken.saturating_add(more) <= max)
        };
        let has_room = fits(taken.records, 1, self.definition.records_max)
            && fits(taken.bytes, bytes, self.definition.bytes_max);
        if has_room {
            taken.add(Usage { records: 1, bytes });
        }
        ((window, source), has_room)
    }

    /// Gives back what was taken.
    pub(super) fn give_back(&self, (window, source): &Place, usage: Usage) {
        let mut state = locked(&self.state);
        if state.window == *window
            && let Some(taken) = state.taken.get_mut(source)
        {
            taken.subtract(usage);
        }
    }

    /// Counts what was not let in.
    pub(super) fn lose(&self, place: &Place, usage: Usage) {
        self.counters.records.add(usage.records);
        self.counters.bytes.add(usage.bytes);
        let mut state = locked(&self.state);
        let is_full = state.lost.len() >= SOURCES_MAX && !state.lost.contains_key(place);
        let place = if is_full {
            (place.0, Source::Others)
        } else {
            place.clone()
        };
        state.lost.entry(place).or_default().add(usage);
    }

    /// Moves losses of windows that have ended, or all of them.
    pub(super) fn take_losses(&self, now: Timestamp, is_end: bool, losses: &mut Vec<Loss>) {
        take_losses(&self.definition, &self.state, now, is_end, losses);
    }
}

impl QuotaDefinition {
    /// Whether what was counted by one can be by the other: they may differ in how much they let in.
    fn is_alike(&self, other: &QuotaDefinition) -> bool {
        self.filter == other.filter && self.by == other.by && self.window_ns == other.window_ns
    }
}

/// A quota that is applied no more.
pub(super) struct RetiredQuota {
    definition: QuotaDefinition,
    state: Arc<Mutex<State>>,
}

impl RetiredQuota {
    /// Moves all its losses; gives whether there may be more, of batches that are under way.
    pub(super) fn take_losses(&self, now: Timestamp, losses: &mut Vec<Loss>) -> bool {
        let is_used = Arc::strong_count(&self.state) > 1;
        take_losses(&self.definition, &self.state, now, true, losses);
        is_used
    }
}

fn take_losses(
    definition: &QuotaDefinition,
    state: &Mutex<State>,
    now: Timestamp,
    is_end: bool,
    losses: &mut Vec<Loss>,
) {
    let end_of = |window: i64| Timestamp((window + 1).saturating_mul(definition.window_ns));
    let mut state = locked(state);
    let due = state
        .lost
        .extract_if(.., |(window, _), _| is_end || end_of(*window) <= now);
    for ((window, source), usage) in due {
        let loss = Loss {
            quota: definition.name.clone(),
            source: match source {
                Source::Others => None,
                Source::Of(values) => Some(definition.by.iter().cloned().zip(values).collect()),
            },
            usage,
            from: Timestamp(window.saturating_mul(definition.window_ns)),
            until: end_of(window).min(now),
        };
        losses::add(losses, loss);
    }
}
