//! `logpond forget`: accepts the loss of files that have vanished from a server's data directory.

use serde_json::Value;

use super::{Exit, Failure, client};
use crate::cli::Forget;
use logpond_client::{Client, Parameters};
use logpond_host::terminal::note;
use logpond_render::quantity;

/// The longest answer: some hundred bytes for each of very many files.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

pub(super) fn run(args: &Forget) -> Result<Exit, Failure> {
    let client = client(&args.server)?;
    let mut forgotten = Vec::new();
    let each: Vec<Parameters> = if args.all {
        vec![vec![("all", "true".into())]]
    } else {
        let files = args.files.iter();
        files.map(|file| vec![("file", file.clone())]).collect()
    };
    for parameters in each {
        let answer = forget(&client, &parameters);
        // Those before it are forgotten in any case.
        forgotten.extend(answer.inspect_err(|_| say(&forgotten))?);
    }
    say(&forgotten);
    if forgotten.is_empty() {
        note("no file is missing");
        return Ok(Exit::None);
    }
    Ok(Exit::Found)
}

/// Has files forgotten; gives which.
fn forget(client: &Client, parameters: &Parameters) -> Result<Vec<Value>, Failure> {
    let answer = client.post("/api/v1/forget", parameters)?;
    let answer: Value = serde_json::from_slice(&answer.into_text(ANSWER_BYTES_MAX)?)?;
    let files = answer["forgotten"].as_array().into_iter().flatten();
    Ok(files.cloned().collect())
}

/// Says what was forgotten.
fn say(forgotten: &[Value]) {
    for file in forgotten {
        note(&format!(
            "{} is forgotten, with {} received from {} to {}",
            file["file"].as_str().unwrap_or_default(),
            quantity::counted(file["records"].as_u64().unwrap_or(0), "record"),
            file["received_min"].as_str().unwrap_or_default(),
            file["received_max"].as_str().unwrap_or_default(),
        ));
    }
}
