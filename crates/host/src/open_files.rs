//! How many files and sockets this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets the process open as many as it may: each segment is an open file, and so is each connection. Gives
/// how many that are now.
pub fn raise_limit() -> u64 {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = maximum;
    // Where that fails, the limit stays as it was.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
