//! `logpond cluster`: what a cluster needs beside its servers.

mod ca;
mod certificate;
mod drain;
mod forget;
mod plan;
mod status;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Exit, Failure};
use crate::cli::{Cluster, ClusterCa};
use logpond_client::{Answer, Client, ClientError, Parameters};
use logpond_node::operate::ClusterStatus;

/// Keys are for their owner only.
const KEY_MODE: u32 = 0o600;

/// Certificates are shown to everybody who connects.
const CERTIFICATE_MODE: u32 = 0o644;

/// Directories with keys in them.
const DIRECTORY_MODE: u32 = 0o700;

pub(super) fn run(cluster: &Cluster) -> Result<Exit, Failure> {
    match cluster {
        Cluster::Ca(ClusterCa::Create(args)) => ca::create(args),
        Cluster::Certificate(args) => certificate::run(args),
        Cluster::Status(args) => status::run(args),
        Cluster::Drain(args) => drain::run(args),
        Cluster::Forget(args) => forget::run(args),
        Cluster::Plan(args) => plan::run(args),
    }
}

/// The longest answer: some 2 KB for each node.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// How the nodes are doing, as one of them says.
fn ask_status(client: &Client) -> Result<ClusterStatus, ClientError> {
    parse(client.get("/api/v1/cluster", &Parameters::new())?)
}

fn parse<T: DeserializeOwned>(answer: Answer) -> Result<T, ClientError> {
    let text = answer.into_text(ANSWER_BYTES_MAX)?;
    serde_json::from_slice(&text).map_err(|error| ClientError::Nonsense(Box::new(error)))
}

/// The node that was meant.
#[derive(Deserialize)]
struct NodeReply {
    /// Its name for ever.
    node: String,
}

/// Tells a node something of another one, or of itself.
fn tell(client: &Client, path: &str, parameters: &Parameters) -> Result<NodeReply, ClientError> {
    parse(client.post(path, parameters)?)
}

/// Writes new files into a directory, which is made if it does not exist: all of them, or none if
/// one is there already.
fn write_new(directory: &Path, files: &[(&str, u32, &str)]) -> Result<(), Failure> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(DIRECTORY_MODE);
    let failed = |path: &Path, error: std::io::Error| -> Failure {
        format!("{} cannot be written: {error}", path.display()).into()
    };
    builder
        .create(directory)
        .map_err(|error| failed(directory, error))?;
    for (name, _, _) in files {
        let path = directory.join(name);
        if path.symlink_metadata().is_ok() {
            return Err(format!(
                "{} exists already, and is not overwritten: name another directory by --out, or \
                 move it away",
                path.display()
            )
            .into());
        }
    }
    for (name, mode, text) in files {
        let path = directory.join(name);
        let write = || {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(*mode)
                .open(&path)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        write().map_err(|error| failed(&path, error))?;
    }
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| failed(directory, error))
}
