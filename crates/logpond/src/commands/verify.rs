//! `logpond verify`: checks a data directory.

use super::{Exit, Failure, serve};
use crate::cli::{Serve, Verify};

pub(super) fn run(args: &Verify) -> Result<Exit, Failure> {
    let flags = Serve {
        config: args.config.clone(),
        data: args.data.clone(),
        ..Serve::default()
    };
    let settings = serve::settings(&flags)?;
    Err(format!(
        "{} would be checked, but this build cannot",
        settings.data.display()
    )
    .into())
}
