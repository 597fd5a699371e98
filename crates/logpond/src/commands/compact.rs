//! `logpond compact`: merges and recompresses now.

use super::listing::rows;
use super::{Exit, Failure, client};
use crate::cli::Compact;
use logpond_client::Parameters;
use logpond_host::terminal::note;
use logpond_render::quantity;

pub(super) fn run(args: &Compact) -> Result<Exit, Failure> {
    let mut parameters = Parameters::new();
    if args.cold {
        parameters.push(("cold", "true".into()));
    }
    if args.wait {
        parameters.push(("wait", "true".into()));
    }
    let answer = client(&args.server)?.post("/api/v1/compact", &parameters)?;
    if !args.wait {
        note("compaction has started; `logpond segments` shows how far it is");
        return Ok(Exit::Found);
    }
    let (_, trailer) = rows(answer)?;
    if !trailer.complete {
        for missing in &trailer.missing {
            note(&format!(
                "logpond: {}",
                missing.as_str().unwrap_or("something failed")
            ));
        }
        return Err("the compaction did not finish".into());
    }
    let elapsed = std::time::Duration::from_secs_f64((trailer.elapsed_ms / 1000.0).clamp(0.0, 1e9));
    note(&format!("compacted in {}", quantity::span(elapsed)));
    Ok(Exit::Found)
}
