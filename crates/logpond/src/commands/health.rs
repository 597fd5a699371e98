//! `logpond health`: asks a server if it lives, for containers and scripts.

use super::listing::print;
use super::{Exit, Failure, access};
use crate::cli::Health;
use logpond_client::{Address, Client, ClientError, Parameters};
use logpond_settings::parse_age;

/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

pub(super) fn run(args: &Health) -> Result<Exit, Failure> {
    let within = parse_age(&args.within).map_err(|error| format!("--within: {error}"))?;
    let address = Address::parse(&args.server.addr)?;
    let access = access(&args.server.access, std::slice::from_ref(&address))?;
    let client = Client::within(address, &access, within);
    let path = if args.ready { "/-/ready" } else { "/-/healthy" };
    match client.get(path, &Parameters::new()) {
        Ok(answer) => {
            let text = answer.into_text(ANSWER_BYTES_MAX)?;
            if !args.quiet {
                print(&text)?;
            }
            Ok(Exit::Found)
        }
        Err(error) if args.ready && is_stopping(&error) => {
            if !args.quiet {
                print(b"stopping\n")?;
            }
            Ok(Exit::None)
        }
        Err(error) => Err(error.into()),
    }
}

fn is_stopping(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { status: 503, .. })
}
