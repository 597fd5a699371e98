//! Coverage counters of the instrumented crates.
//!
//! The compiler gives every branch one byte that counts how often it was taken, and calls
//! [`__sanitizer_cov_8bit_counters_init`] once per object before `main`. This is the only file of
//! the project with `unsafe`; it never ships.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// The most object files with counters. The project's crates give some hundreds.
const OBJECTS_MAX: usize = 16 << 10;

static OBJECTS: AtomicUsize = AtomicUsize::new(0);
static STARTS: [AtomicUsize; OBJECTS_MAX] = [const { AtomicUsize::new(0) }; OBJECTS_MAX];
static LENGTHS: [AtomicUsize; OBJECTS_MAX] = [const { AtomicUsize::new(0) }; OBJECTS_MAX];

/// Called by the instrumented objects before `main`, with their counters.
///
/// # Safety
/// `start` and `stop` bound one array of counters that lives as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    let length = (stop as usize).saturating_sub(start as usize);
    let known = OBJECTS.load(Ordering::Relaxed);
    let again = (0..known).any(|i| STARTS[i].load(Ordering::Relaxed) == start as usize);
    if length == 0 || known == OBJECTS_MAX || again {
        return;
    }
    STARTS[known].store(start as usize, Ordering::Relaxed);
    LENGTHS[known].store(length, Ordering::Relaxed);
    OBJECTS.store(known + 1, Ordering::Relaxed);
}

/// Calls `visit` with the index and the value of every counter that is not zero, and zeroes it.
pub(crate) fn take(mut visit: impl FnMut(usize, u8)) {
    let mut base = 0;
    for object in 0..OBJECTS.load(Ordering::Relaxed) {
        let start = STARTS[object].load(Ordering::Relaxed) as *const AtomicU8;
        let length = LENGTHS[object].load(Ordering::Relaxed);
        // SAFETY: the array was given by the compiler for the life of the process, and counters
        // are only touched from this thread; AtomicU8 has the layout of u8.
        let counters = unsafe { std::slice::from_raw_parts(start, length) };
        for (at, counter) in counters.iter().enumerate() {
            let value = counter.load(Ordering::Relaxed);
            if value != 0 {
                visit(base + at, value);
                counter.store(0, Ordering::Relaxed);
            }
        }
        base += length;
    }
}

/// Number of counters.
pub(crate) fn count() -> usize {
    let objects = OBJECTS.load(Ordering::Relaxed);
    LENGTHS[..objects]
        .iter()
        .map(|length| length.load(Ordering::Relaxed))
        .sum()
}
