//! What becomes of panics, which are defects of this program, in threads that the server needs.
//!
//! What can be tried again is [`caught`], and its thread goes on: a defect that one odd record or file
//! brings out costs that and nothing else. Where nothing takes the place of what has ended, the server
//! stops in order ([`StopAtPanic`]), so that whoever supervises it starts it again.

use std::any::Any;
use std::error;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;

use crate::shutdown::Stopper;

/// A panic that was caught.
#[derive(Debug)]
pub struct CaughtPanic {
    message: String,
}

impl CaughtPanic {
    fn of(payload: &(dyn Any + Send)) -> CaughtPanic {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let message = text.unwrap_or("no message").to_owned();
        CaughtPanic { message }
    }
}

impl fmt::Display for CaughtPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CaughtPanic { message } = self;
        write!(
            f,
            "a defect of this program, please report it: panicked ({message})"
        )
    }
}

impl error::Error for CaughtPanic {}

/// Does work that may panic. What it works on must bear being left at any step.
///
/// # Errors
/// When it panics.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, CaughtPanic> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| CaughtPanic::of(&*payload))
}

/// Stops the server if the thread that drops this is panicking.
#[derive(Debug)]
pub struct StopAtPanic(pub Arc<Stopper>);

impl Drop for StopAtPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            let thread = thread::current();
            let name = thread.name().unwrap_or("a thread");
            crate::telemetry::warn(&format!(
                "{name} panicked, and the server stops; please report it"
            ));
            self.0.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shutdown;

    #[test]
    fn what_a_panic_said_is_kept() {
        assert_eq!(caught(|| 7).unwrap(), 7);
        let line = 7;
        let panics: [fn(i32) -> i32; 3] = [
            |_| panic!("a text"),
            |line| panic!("in line {line}"),
            |_| panic::panic_any(0_u8),
        ];
        let messages = panics.map(|panic| caught(|| panic(line)).unwrap_err().message);
        assert_eq!(messages, ["a text", "in line 7", "no message"]);
    }

    #[test]
    fn only_a_panic_stops_the_server() {
        let (stopper, shutdown) = shutdown::pair();
        let stopper = Arc::new(stopper);
        drop(StopAtPanic(stopper.clone()));
        assert!(!shutdown.is_stopping());
        let guard = StopAtPanic(stopper);
        let panicking = thread::spawn(move || {
            let _guard = guard;
            panic!("a defect");
        });
        assert!(panicking.join().is_err());
        assert!(shutdown.is_stopping());
    }
}
