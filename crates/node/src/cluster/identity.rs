//! The node's name, in its data directory, and the name of this life of its process.

use std::fmt;

use logpond_cluster::{NodeId, ProcessId};
use logpond_record::cast;
use logpond_segment::disk::Disk;

use logpond_host::clock;
use logpond_host::disk::replace;

/// The directory of what a node knows of its cluster, below the data directory.
pub(super) const DIRECTORY: &str = "cluster";

/// The file with the node's name.
const PATH: &str = "cluster/node";

/// Longer than any name; what is longer is none.
const BYTES_MAX: u64 = 64;

/// Who this node and its process are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The node.
    pub node: NodeId,
    /// This life of its process.
    pub process: ProcessId,
}

/// A node without a name.
#[derive(Debug)]
pub enum IdentityError {
    /// The file cannot be read or written.
    Disk(std::io::Error),
    /// The file holds something else.
    Malformed,
    /// The system has no randomness.
    Random(getrandom::Error),
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentityError::Disk(_) => write!(f, "{PATH} cannot be used"),
            IdentityError::Malformed => write!(
                f,
                "{PATH} should hold a node's name, 32 hexadecimal digits; restore it, or remove \
                 it and the node is a new one to the others"
            ),
            IdentityError::Random(error) => {
                write!(f, "the system has no randomness for a name: {error}")
            }
        }
    }
}

impl std::error::Error for IdentityError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            IdentityError::Disk(source) => Some(source),
            IdentityError::Malformed | IdentityError::Random(_) => None,
        }
    }
}

impl Identity {
    /// Reads the node's name, or mints one; the process gets a new one.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub fn open(disk: &dyn Disk) -> Result<Identity, IdentityError> {
        disk.create_directory(DIRECTORY)
            .map_err(IdentityError::Disk)?;
        let node = match read(disk)? {
            Some(node) => node,
            None => {
                let node = NodeId(random()?);
                let text = format!("{node}\n");
                replace(disk, DIRECTORY, PATH, text.as_bytes()).map_err(IdentityError::Disk)?;
                node
            }
        };
        Ok(Identity {
            node,
            process: ProcessId(random()?),
        })
    }
}

fn read(disk: &dyn Disk) -> Result<Option<NodeId>, IdentityError> {
    let Some(bytes) = read_small(disk, PATH, BYTES_MAX).map_err(IdentityError::Disk)? else {
        return Ok(None);
    };
    let text = String::from_utf8(bytes).map_err(|_| IdentityError::Malformed)?;
    let node = text.trim_end().parse();
    node.map(Some).map_err(|_| IdentityError::Malformed)
}

fn random() -> Result<u128, IdentityError> {
    clock::random().map_err(IdentityError::Random)
}

/// The bytes of a file of at most `bytes_max`; `None` if there is none.
pub(super) fn read_small(
    disk: &dyn Disk,
    path: &str,
    bytes_max: u64,
) -> std::io::Result<Option<Vec<u8>>> {
    let file = match disk.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.bytes()?;
    if length > bytes_max {
        let text = format!("{path} is longer than {bytes_max} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, text));
    }
    let mut bytes = vec![0; cast::to_usize(length)];
    file.read_at(0, &mut bytes)?;
    Ok(Some(bytes))
}
