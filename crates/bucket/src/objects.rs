//! Objects by name, as this crate sees a store of them. The real one is [`crate::Store`],
//! faulty ones are in tests.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use logpond_segment::disk::ReadAt;

/// An object of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectEntry {
    /// Its name below the bucket's prefix.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// When it was written last, by the store's clock.
    pub modified: SystemTime,
}

impl ObjectEntry {
    /// Whether it has been there for `age` at this time of the store's clock.
    pub fn is_older(&self, time: SystemTime, age: Duration) -> bool {
        let since = time.duration_since(self.modified);
        since.is_ok_and(|since| since >= age)
    }
}

/// The result of a conditional creation of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateOutcome {
    /// It is there, and was not before.
    New,
    /// There is one of this name: somebody else's, or this one, if the reply to an earlier attempt was
    /// lost. Who asks must read it to know.
    Exists,
}

/// What kind of failure it is; decides what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// There is no such object, or, where one is written, no such bucket.
    Missing,
    /// The store says that there is no such bucket.
    NoBucket,
    /// The store refuses: credentials or rights. Trying again does not help until somebody has
    /// changed something.
    Refused,
    /// The store cannot be reached, is too busy, or fails; after several attempts.
    Unavailable,
    /// The store does not do what is asked for.
    Unsupported,
    /// This program has a defect that shows here.
    Defect,
}

/// Why something could not be done with an object.
#[derive(Debug)]
pub struct BucketError {
    /// What was tried, as in "read" or "create".
    pub operation: &'static str,
    /// The object's name or the prefix of names.
    pub name: String,
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// What the store or the way to it says.
    pub source: Box<dyn Error + Send + Sync>,
}

impl fmt::Display for BucketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            FailureKind::Missing if self.operation == "read" => "there is no such object",
            FailureKind::Missing | FailureKind::NoBucket => {
                "there is no such bucket; make it, or correct its name"
            }
            FailureKind::Refused => {
                "the store refuses it; check the credentials, rights and region"
            }
            FailureKind::Unavailable => "the store is not available",
            FailureKind::Unsupported => "the store cannot do it",
            FailureKind::Defect => "this program fails at it",
        };
        write!(
            f,
            "cannot {} {:?} in the bucket: {what}",
            self.operation, self.name
        )
    }
}

impl Error for BucketError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

impl From<BucketError> for io::Error {
    fn from(error: BucketError) -> io::Error {
        let kind = match error.kind {
            FailureKind::Missing | FailureKind::NoBucket => io::ErrorKind::NotFound,
            FailureKind::Refused => io::ErrorKind::PermissionDenied,
            FailureKind::Unavailable => io::ErrorKind::HostUnreachable,
            FailureKind::Unsupported => io::ErrorKind::Unsupported,
            FailureKind::Defect => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

/// A store of objects that never change once they are written, by name.
///
/// Every call may block for as long as requests are tried again, none is made from an async thread. Names
/// are below the bucket's prefix and use `/`.
pub trait Objects: Send + Sync {
    /// A part of an object: as many bytes as asked for, or an error; reading past the end is one
    /// of kind [`FailureKind::Missing`] or `Unavailable`.
    ///
    /// # Errors
    /// See [`BucketError`].
    fn read(&self, name: &str, offset: u64, bytes: u64) -> Result<Bytes, BucketError>;

    /// A whole object of at most `bytes_max` bytes; `None` if there is none of this name.
    ///
    /// # Errors
    /// When it is longer, or cannot be read.
    fn get(&self, name: &str, bytes_max: u64) -> Result<Option<Bytes>, BucketError>;

    /// Writes an object if there is none of this name, in one step: of several that try, one gets
    /// [`CreateOutcome::New`] at most.
    ///
    /// # Errors
    /// When it is not known whether it was written.
    fn create(&self, name: &str, body: Bytes) -> Result<CreateOutcome, BucketError>;

    /// Writes an object, in place of any of this name. It is whole and durable once this returns.
    ///
    /// # Errors
    /// When it may not have been written.
    fn put(&self, name: &str, body: Bytes) -> Result<(), BucketError>;

    /// Writes a file as an object, as [`Objects::put`] does. The real store has little of it in memory at a
    /// time.
    ///
    /// # Errors
    /// When the file cannot be read or may not have been written.
    fn put_file(&self, name: &str, file: &dyn ReadAt) -> Result<(), BucketError> {
        let body = file.bytes().and_then(|bytes| {
            let mut body = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
            file.read_at(0, &mut body).map(|()| body)
        });
        let body = body.map_err(|error| BucketError {
            operation: "write",
            name: name.to_owned(),
            kind: FailureKind::Unavailable,
            source: error.into(),
        })?;
        self.put(name, Bytes::from(body))
    }

    /// The objects whose names begin with a prefix, which ends with `/`, and come after `behind`, in ascending order of names.
    ///
    /// # Errors
    /// See [`BucketError`].
    fn list(&self, prefix: &str, behind: Option<&str>) -> Result<Vec<ObjectEntry>, BucketError>;

    /// Removes an object; one that is not there counts as removed.
    ///
    /// # Errors
    /// When it may be there still.
    fn remove(&self, name: &str) -> Result<(), BucketError>;
}
