//! `logpond keep`: the process that keeps a server's sockets while none runs.

use super::{Exit, Failure};
use crate::cli::Keep;
use logpond_listen::net::local::keeper;

pub(super) fn run(args: &Keep) -> Result<Exit, Failure> {
    keeper::holder::run(&args.control)?;
    Ok(Exit::Found)
}
