//! The real clock and the real randomness. The lower crates get both as arguments.

use std::time::{SystemTime, UNIX_EPOCH};

use logpond_record::{Id, Incarnation, Timestamp, cast};

/// The wall clock now. Clamped to the range of [`Timestamp`], whatever the machine's clock says.
pub fn now() -> Timestamp {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)),
        Err(before) => {
            Timestamp(i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns))
        }
    }
}

/// The time since the machine was started, which nobody sets and which goes on while it sleeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// The kernel's name of this boot; empty if it does not say.
    pub id: String,
}

/// The kernel's file with it.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

impl Boot {
    /// The one that this process runs in.
    pub fn current() -> Boot {
        let id = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
        // It is kept in a line of a file.
        let id: String = id.trim().chars().take(64).collect();
        let is_word = !id.contains(char::is_whitespace);
        Boot {
            id: if is_word { id } else { String::new() },
        }
    }

    /// How long it has lasted, in milliseconds.
    pub fn now_ms(&self) -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let (seconds, nanos) = (time.tv_sec, time.tv_nsec);
        u64::try_from(
            seconds
                .saturating_mul(1_000)
                .saturating_add(nanos / 1_000_000),
        )
        .unwrap_or(0)
    }
}

/// How far the kernel's clock may be from `now`, in nanoseconds: more than any step between two readings,
/// and less than any wrong clock is off.
const KERNEL_OFF_NS_MAX: u64 = 60_000_000_000;

/// The flag of a clock that no time server keeps right (`STA_UNSYNC` of adjtimex(2)).
const UNSYNCHRONISED: i32 = 0x40;

/// True if the kernel says that a time server keeps its clock right, and `now` is what that clock says. A
/// clock that somebody sets by hand loses this state.
pub fn is_synchronised(now: Timestamp) -> bool {
    let mut state = rtime_clock::adjtime::Timex::new();
    let Ok(_) = rtime_clock::adjtime::adjtimex(&mut state) else {
        // Nobody says so, then.
        return false;
    };
    // The parts of a second do not matter.
    let kernel = Timestamp::from_seconds(state.0.time.tv_sec, 0);
    let is_kernels = |kernel: Timestamp| now.0.abs_diff(kernel.0) <= KERNEL_OFF_NS_MAX;
    state.0.status & UNSYNCHRONISED == 0 && kernel.is_some_and(is_kernels)
}

/// A new random incarnation.
///
/// # Errors
/// When the system has no randomness to give. The caller must not append without one: a
/// predictable incarnation could be used twice.
pub fn mint_incarnation() -> Result<Incarnation, getrandom::Error> {
    random().map(Incarnation)
}

/// A new segment's name: an id as records have, of an incarnation that nothing else uses. `made`
/// is how many names its maker has made: without randomness, which no system of ours lacks, it and
/// `now` still make names distinct.
pub fn mint_segment_id(now: Timestamp, made: u64) -> Id {
    let incarnation = Incarnation(random().unwrap_or_default());
    Id::new(cast::unsigned(now.unix_ms().max(0)), incarnation, made)
}

/// 128 random bits.
///
/// # Errors
/// When the system has no randomness to give.
pub fn random() -> Result<u128, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_le_bytes(bytes))
}
