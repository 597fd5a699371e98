//! The files of orders: an account's key, and certificates with their keys.
//!
//! Names of files tell what they are for: the first of a certificate's names, and a hash of all of them and of the
//! server, so that a change of settings takes nothing for something else.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use aws_lc_rs::digest::{SHA256, digest};
use logpond_proxy::OrderedCertificate;
use logpond_tls::{Identity, TlsError, time_text};
use rustix::fs::{Access, access};
use rustls_acme::{AccountCache, CertCache};

use crate::commands::Failure;
use logpond_host::private_file;
use logpond_host::telemetry::{say, warn};
use logpond_host::terminal::with_causes;

/// Keys are for their owner only, and so is the directory, if it is made here.
const DIRECTORY_MODE: u32 = 0o700;

/// Digits of a hash in the name of a file.
const HASH_DIGITS: usize = 16;

/// Where the files of an order are. Cheap to clone.
#[derive(Clone)]
pub(super) struct Store(Arc<Files>);

struct Files {
    directory: PathBuf,
    certificate: PathBuf,
    account: PathBuf,
    ordered: Arc<OrderedCertificate>,
}

impl Store {
    /// For an order at `server`, by the account with what is said of it.
    pub(super) fn new(
        directory: &Path,
        ordered: Arc<OrderedCertificate>,
        server: &str,
        account: &[String],
    ) -> Store {
        let names = ordered.names();
        let first = names.first().map_or("none", String::as_str);
        let of_certificate = hash([&[server.to_owned()], names].concat().as_slice());
        Store(Arc::new(Files {
            directory: directory.to_owned(),
            certificate: directory.join(format!("{first}-{of_certificate}.pem")),
            account: directory.join(format!("account-{}.key", hash(account))),
            ordered,
        }))
    }

    pub(super) fn directory(&self) -> &Path {
        &self.0.directory
    }

    pub(super) fn certificate(&self) -> &Path {
        &self.0.certificate
    }

    pub(super) fn account(&self) -> &Path {
        &self.0.account
    }

    pub(super) fn ordered(&self) -> &Arc<OrderedCertificate> {
        &self.0.ordered
    }

    /// Shows what is there already, and says so; gives whether there is something.
    pub(super) fn show(&self) -> bool {
        if self.read_shown().is_none() {
            return false;
        }
        let names = self.ordered().names().join(", ");
        let until = self
            .ordered()
            .not_after()
            .map(time_text)
            .unwrap_or_default();
        let path = self.certificate().display();
        say(&format!(
            "the certificate for {names} is that in {path}, which holds until {until}"
        ));
        true
    }

    /// Makes the directory, and finds out whether files can be put there.
    ///
    /// # Errors
    /// When they cannot.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let directory = self.directory();
        let usable = make(directory)
            .and_then(|()| Ok(access(directory, Access::WRITE_OK | Access::EXEC_OK)?));
        usable.map_err(|error| {
            format!(
                "acme-dir: nothing can be kept in {}: {error}; make it a directory of the user that \
                 this runs as",
                directory.display()
            )
            .into()
        })
    }

    /// Shows the certificate that is in the file, and gives its text. One that is bad or over is as good as none.
    fn read_shown(&self) -> Option<Vec<u8>> {
        let path = self.certificate();
        let identity = match fs::read(path) {
            Ok(text) => Identity::of_text(text, path),
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(source) => {
                let path = path.to_owned();
                Err(TlsError::Unreadable { path, source })
            }
        };
        match identity {
            Ok(identity) => {
                self.ordered().show(identity.key, identity.not_after);
                Some(identity.key_text)
            }
            Err(error) => {
                warn(&format!("{}; another one is ordered", with_causes(&error)));
                None
            }
        }
    }

    /// Shows a certificate that has come, and keeps it.
    fn keep_shown(&self, text: Vec<u8>) -> io::Result<()> {
        let identity = Identity::of_text(text, self.certificate()).map_err(io::Error::other)?;
        self.ordered().show(identity.key, identity.not_after);
        self.write(self.certificate(), &identity.key_text)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        make(self.directory())?;
        let directory = File::open(self.directory())?;
        // Against a process that takes over from this one.
        directory.lock()?;
        private_file::replace(path, &directory, bytes)
    }

    /// Does something with files where that is done.
    async fn in_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let store = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&store)).await;
        done.map_err(io::Error::other)?
    }
}

#[async_trait]
impl CertCache for Store {
    type EC = io::Error;

    async fn load_cert(&self, _: &[String], _: &str) -> io::Result<Option<Vec<u8>>> {
        self.in_files(|store| Ok(store.read_shown())).await
    }

    async fn store_cert(&self, _: &[String], _: &str, text: &[u8]) -> io::Result<()> {
        let text = text.to_vec();
        self.in_files(|store| store.keep_shown(text)).await
    }
}

#[async_trait]
impl AccountCache for Store {
    type EA = io::Error;

    async fn load_account(&self, _: &[String], _: &str) -> io::Result<Option<Vec<u8>>> {
        self.in_files(|store| match fs::read(store.account()) {
            Ok(key) => Ok(Some(key)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }

    async fn store_account(&self, _: &[String], _: &str, key: &[u8]) -> io::Result<()> {
        let key = key.to_vec();
        self.in_files(move |store| store.write(store.account(), &key))
            .await
    }
}

fn make(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(DIRECTORY_MODE);
    builder.create(directory)
}

/// Texts in a few digits.
fn hash(texts: &[String]) -> String {
    let text = texts.join("\n");
    let bytes = digest(&SHA256, text.as_bytes());
    let hex = |text: String, byte: &u8| text + &format!("{byte:02x}");
    let bytes = &bytes.as_ref()[..HASH_DIGITS / 2];
    bytes.iter().fold(String::with_capacity(HASH_DIGITS), hex)
}

#[cfg(test)]
mod tests;
