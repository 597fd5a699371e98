//! The real stores, by the library `object_store`.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::TryStreamExt;
use logpond_segment::disk::ReadAt;
use object_store::path::Path;
use object_store::{GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};

use crate::cache::lock;
use crate::location::Location;
use crate::objects::{BucketError, CreateOutcome, FailureKind, ObjectEntry, Objects};
use crate::rejected::RejectedRequest;
use crate::vendors;

/// Longer objects are sent in parts of this length.
const PART_BYTES: u64 = 16 << 20;

/// The most objects of one listing: a tenth of a kilobyte each.
const ENTRIES_MAX: usize = 4_000_000;

/// How long nothing is read from a store that did not answer.
const SILENCE_PAUSE: Duration = Duration::from_secs(10);

/// What was asked of a store.
#[derive(Debug, Default)]
pub struct StoreCounters {
    /// Objects or parts of them that were read.
    pub reads: AtomicU64,
    /// Bytes of these.
    pub read_bytes: AtomicU64,
    /// Objects or parts of them that were written.
    pub writes: AtomicU64,
    /// Bytes of these.
    pub written_bytes: AtomicU64,
    /// Listings.
    pub lists: AtomicU64,
    /// Objects that were removed.
    pub removals: AtomicU64,
    /// What failed, after all attempts.
    pub failures: AtomicU64,
    /// Requests on the wire, each attempt counted; none where the store is a directory.
    pub attempts: Arc<AtomicU64>,
}

/// A store of objects at a place.
pub struct Store {
    store: Arc<dyn ObjectStore>,
    handle: Handle,
    counters: StoreCounters,
    /// Whose credentials are used, where none were given.
    hint: Option<&'static str>,
    is_closed: watch::Sender<bool>,
    /// When reading was given up last for want of an answer.
    silent_since: Mutex<Option<Instant>>,
    // In this order: the thread ends when the sender is gone.
    _alive: oneshot::Sender<()>,
    _thread: JoinHandle<()>,
}

impl Store {
    /// A store at this place, with credentials, region and endpoint from these variables of the environment.
    /// Nothing is asked of it yet; a directory is made if it is not there. Starts the thread
    /// `lp-bucket-io`, which waits for sockets.
    ///
    /// # Errors
    /// When settings are missing or wrong, or the directory cannot be made.
    pub fn open(location: &Location, variables: &[(String, String)]) -> io::Result<Store> {
        let counters = StoreCounters::default();
        let store = vendors::open(location, variables, &counters.attempts)?;
        let (alive, ended) = oneshot::channel::<()>();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let thread = thread::Builder::new().name("lp-bucket-io".to_owned());
        let thread = thread.spawn(move || {
            // The sender is only ever dropped.
            let _ = runtime.block_on(ended);
        })?;
        Ok(Store {
            store,
            handle,
            counters,
            hint: vendors::without_credentials(location, variables),
            is_closed: watch::Sender::new(false),
            silent_since: Mutex::new(None),
            _alive: alive,
            _thread: thread,
        })
    }

    /// What was asked of it.
    pub fn counters(&self) -> &StoreCounters {
        &self.counters
    }

    /// Ends all requests, now and later: each fails at once.
    pub fn close(&self) {
        self.is_closed.send_replace(true);
    }

    /// Waits for a request; what fails is counted and named.
    fn wait<T>(
        &self,
        operation: &'static str,
        name: &str,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, BucketError> {
        let mut closed = self.is_closed.subscribe();
        let unless_closed = async {
            tokio::select! {
                result = request => result,
                _ = closed.wait_for(|is_closed| *is_closed) => Err(object_store::Error::Generic {
                    store: "bucket",
                    source: "this program is ending".into(),
                }),
            }
        };
        self.handle.block_on(unless_closed).map_err(|error| {
            let kind = kind(&error);
            if kind != FailureKind::Missing {
                add(&self.counters.failures, 1);
            }
            let is_doubtful = matches!(kind, FailureKind::Refused | FailureKind::Unavailable);
            let source = match self.hint.filter(|_| is_doubtful) {
                Some(hint) => Box::new(Uncertain {
                    hint,
                    source: error,
                }),
                None => Box::<dyn Error + Send + Sync>::from(error),
            };
            BucketError {
                operation,
                name: name.to_owned(),
                kind,
                source,
            }
        })
    }

    fn wrong(
        operation: &'static str,
        name: &str,
        what: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> BucketError {
        BucketError {
            operation,
            name: name.to_owned(),
            kind: FailureKind::Unavailable,
            source: what.into(),
        }
    }

    /// Sends an object in parts; it is there when all of them are.
    fn put_parts(&self, name: &str, file: &dyn ReadAt, bytes: u64) -> Result<(), BucketError> {
        let path = Path::from(name);
        let mut upload = self.wait("write", name, self.store.put_multipart(&path))?;
        let mut offset = 0;
        let result = loop {
            if offset == bytes {
                break self.wait("write", name, upload.complete()).map(drop);
            }
            let length = PART_BYTES.min(bytes - offset);
            let part = match read_part(file, offset, length) {
                Ok(part) => part,
                Err(error) => break Err(Store::wrong("write", name, error)),
            };
            self.note_written(length);
            if let Err(error) = self.wait("write", name, upload.put_part(PutPayload::from(part))) {
                break Err(error);
            }
            offset += length;
        };
        if result.is_err() {
            // The store keeps parts that nobody finished, at the owner's cost, until they are given up.
            let _ = self.wait("give up", name, upload.abort());
        }
        result
    }

    /// Fails if the store did not answer a moment ago: a query over many objects would wait for each of them.
    fn check_silence(&self, name: &str) -> Result<(), BucketError> {
        let since = *lock(&self.silent_since);
        if since.is_some_and(|since| since.elapsed() < SILENCE_PAUSE) {
            let what = "the store did not answer a moment ago, and is asked again soon";
            return Err(Store::wrong("read", name, what));
        }
        Ok(())
    }

    fn note_silence(&self, error: Option<&BucketError>) {
        let is_silent = error.is_some_and(|error| is_time_out(&*error.source));
        if is_silent || error.is_none() {
            *lock(&self.silent_since) = is_silent.then(Instant::now);
        }
    }

    fn note_written(&self, bytes: u64) {
        add(&self.counters.writes, 1);
        add(&self.counters.written_bytes, bytes);
    }

    fn note_read(&self, bytes: u64) {
        add(&self.counters.reads, 1);
        add(&self.counters.read_bytes, bytes);
    }
}

impl Objects for Store {
    fn read(&self, name: &str, offset: u64, bytes: u64) -> Result<Bytes, BucketError> {
        self.check_silence(name)?;
        let path = Path::from(name);
        let range = offset..offset.saturating_add(bytes);
        let found = self.wait("read", name, self.store.get_range(&path, range));
        self.note_silence(found.as_ref().err());
        let found = found?;
        self.note_read(found.len() as u64);
        if found.len() as u64 == bytes {
            Ok(found)
        } else {
            Err(Store::wrong(
                "read",
                name,
                "the object is shorter than it should be",
            ))
        }
    }

    fn get(&self, name: &str, bytes_max: u64) -> Result<Option<Bytes>, BucketError> {
        let path = Path::from(name);
        let request = async {
            let found = self.store.get_opts(&path, GetOptions::default()).await?;
            if found.meta.size <= bytes_max {
                found.bytes().await.map(Some)
            } else {
                Ok(None)
            }
        };
        match self.wait("read", name, request) {
            Ok(Some(found)) => {
                self.note_read(found.len() as u64);
                Ok(Some(found))
            }
            Ok(None) => {
                let what = format!("it has more than {bytes_max} bytes");
                Err(Store::wrong("read", name, what))
            }
            Err(error) if error.kind == FailureKind::Missing => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn create(&self, name: &str, body: Bytes) -> Result<CreateOutcome, BucketError> {
        let path = Path::from(name);
        self.note_written(body.len() as u64);
        let request = async {
            let body = PutPayload::from(body);
            match self
                .store
                .put_opts(&path, body, PutMode::Create.into())
                .await
            {
                Ok(_) => Ok(CreateOutcome::New),
                Err(
                    object_store::Error::AlreadyExists { .. }
                    | object_store::Error::Precondition { .. },
                ) => Ok(CreateOutcome::Exists),
                Err(error) => Err(error),
            }
        };
        self.wait("create", name, request)
    }

    fn put(&self, name: &str, body: Bytes) -> Result<(), BucketError> {
        let path = Path::from(name);
        self.note_written(body.len() as u64);
        let request = self.store.put(&path, PutPayload::from(body));
        self.wait("write", name, request).map(drop)
    }

    fn put_file(&self, name: &str, file: &dyn ReadAt) -> Result<(), BucketError> {
        let failed = |error: io::Error| Store::wrong("write", name, error);
        let bytes = file.bytes().map_err(failed)?;
        if bytes > PART_BYTES {
            return self.put_parts(name, file, bytes);
        }
        self.put(name, read_part(file, 0, bytes).map_err(failed)?)
    }

    fn list(&self, prefix: &str, behind: Option<&str>) -> Result<Vec<ObjectEntry>, BucketError> {
        add(&self.counters.lists, 1);
        let below = Path::from(prefix);
        let listing = match behind {
            Some(behind) => self
                .store
                .list_with_offset(Some(&below), &Path::from(behind)),
            None => self.store.list(Some(&below)),
        };
        let collected = listing.try_fold(Vec::new(), |mut entries, found: ObjectMeta| async move {
            if entries.len() == ENTRIES_MAX {
                let text = format!("there are more than {ENTRIES_MAX} objects");
                return Err(object_store::Error::Generic {
                    store: "bucket",
                    source: text.into(),
                });
            }
            entries.push(ObjectEntry {
                name: found.location.to_string(),
                bytes: found.size,
                modified: found.last_modified.into(),
            });
            Ok(entries)
        });
        let mut entries = self.wait("list", prefix, collected)?;
        // Emulators of Azure list from the start, whatever is asked for.
        entries.retain(|entry| behind.is_none_or(|behind| entry.name.as_str() > behind));
        // Directories list in no order.
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        add(&self.counters.removals, 1);
        match self.wait("remove", name, self.store.delete(&Path::from(name))) {
            Err(error) if error.kind != FailureKind::Missing => Err(error),
            _ => Ok(()),
        }
    }
}

fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

fn read_part(file: &dyn ReadAt, offset: u64, bytes: u64) -> io::Result<Bytes> {
    let length = usize::try_from(bytes).map_err(io::Error::other)?;
    let mut part = vec![0; length];
    file.read_at(offset, &mut part)?;
    Ok(Bytes::from(part))
}

fn kind(error: &object_store::Error) -> FailureKind {
    use object_store::Error::{
        NotFound, NotImplemented, NotSupported, PermissionDenied, Unauthenticated,
    };
    match error {
        NotFound { .. } => FailureKind::Missing,
        PermissionDenied { .. } | Unauthenticated { .. } => FailureKind::Refused,
        NotSupported { .. } | NotImplemented { .. } => FailureKind::Unsupported,
        _ => rejected(error).map_or(FailureKind::Unavailable, |rejected| rejected.kind),
    }
}

/// True if a failure is that nothing came in time.
fn is_time_out(error: &(dyn Error + 'static)) -> bool {
    let mut of_system = causes(error).filter_map(|error| error.downcast_ref::<io::Error>());
    of_system.any(|error| error.kind() == io::ErrorKind::TimedOut)
}

/// What the store says of settings, if that is what an error is about in the end.
fn rejected(error: &object_store::Error) -> Option<&RejectedRequest> {
    causes(error).find_map(|error| error.downcast_ref())
}

/// An error and those that it comes from.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// A failure where no credentials were given, which is its reason mostly.
#[derive(Debug)]
struct Uncertain {
    hint: &'static str,
    source: object_store::Error,
}

impl fmt::Display for Uncertain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hint)
    }
}

impl Error for Uncertain {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}
