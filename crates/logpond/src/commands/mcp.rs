//! `logpond mcp`: tools for an assistant that starts this program.

use std::time::Duration;

use tokio::runtime::Builder;

use super::{Exit, Failure, access};
use crate::cli::Mcp;
use logpond_client::{Address, Client};

/// How long the server may take for an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);

pub(super) fn run(args: &Mcp) -> Result<Exit, Failure> {
    let address = Address::parse(&args.server.addr)?;
    let access = access(&args.server.access, std::slice::from_ref(&address))?;
    let client = Client::within(address, &access, ANSWER_TIME_MAX);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(logpond_mcp::serve_stdio(client));
    // A read of standard input cannot be interrupted.
    runtime.shutdown_background();
    served?;
    Ok(Exit::Found)
}
