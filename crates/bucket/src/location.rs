//! Where a bucket is: `s3://NAME/PREFIX`, `gs://NAME/PREFIX`, `az://CONTAINER/PREFIX` or `file:DIRECTORY`.
//!
//! Credentials, region and endpoint come from the environment, under the names that each vendor's own
//! tools use.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// Amazon's S3 or what speaks its protocol.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
}

/// Where a bucket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A directory of this machine, or one that it has mounted.
    Directory(PathBuf),
    /// A bucket of a store.
    Remote {
        /// Whose protocol it speaks.
        vendor: Vendor,
        /// The bucket or container.
        bucket: String,
        /// What all names begin with, without a slash at either end; may be empty.
        prefix: String,
    },
}

/// Why a text says no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocationError {
    text: String,
    what: &'static str,
}

impl fmt::Display for LocationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no bucket: {}; write s3://NAME/PREFIX, gs://NAME/PREFIX, az://CONTAINER/PREFIX or file:DIRECTORY",
            self.text, self.what
        )
    }
}

impl std::error::Error for LocationError {}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Location, LocationError> {
        let wrong = |what| LocationError {
            text: text.to_owned(),
            what,
        };
        let (scheme, rest) = text.split_once(':').ok_or(wrong("it has no scheme"))?;
        let vendor = match scheme {
            "file" => return directory(rest).ok_or(wrong("the directory is not absolute")),
            "s3" | "s3a" => Vendor::S3,
            "gs" | "gcs" => Vendor::Gcs,
            "az" | "azure" => Vendor::Azure,
            _ => return Err(wrong("its scheme is unknown")),
        };
        let rest = rest.strip_prefix("//").ok_or(wrong("// is missing"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_matches('/');
        if bucket.is_empty() {
            return Err(wrong("it names none"));
        }
        if rest.contains(['?', '#', '@']) {
            return Err(wrong("settings and credentials come from the environment"));
        }
        // Other characters make no URL. `$` is in Azure's own containers, `:` in names with a tenant.
        let is_known = |c: char| c.is_ascii_alphanumeric() || "-._$:".contains(c);
        if !bucket.chars().all(is_known) {
            return Err(wrong("its name has characters that no bucket's has"));
        }
        if prefix
            .split('/')
            .any(|part| matches!(part, "." | "..") || (part.is_empty() && !prefix.is_empty()))
        {
            return Err(wrong("its prefix has an empty part or dots"));
        }
        Ok(Location::Remote {
            vendor,
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        })
    }
}

fn directory(rest: &str) -> Option<Location> {
    let path = match rest.strip_prefix("//") {
        Some(path) => path,
        None => rest,
    };
    path.starts_with('/')
        .then(|| Location::Directory(PathBuf::from(path)))
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Directory(path) => write!(f, "file:{}", path.display()),
            Location::Remote {
                vendor,
                bucket,
                prefix,
            } => {
                let scheme = match vendor {
                    Vendor::S3 => "s3",
                    Vendor::Gcs => "gs",
                    Vendor::Azure => "az",
                };
                write!(f, "{scheme}://{bucket}")?;
                if prefix.is_empty() {
                    Ok(())
                } else {
                    write!(f, "/{prefix}")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        for (text, shown) in [
            ("s3://logs", "s3://logs"),
            ("s3://logs/", "s3://logs"),
            ("s3a://logs/a/b/", "s3://logs/a/b"),
            ("gs://logs/a", "gs://logs/a"),
            ("az://logs/a", "az://logs/a"),
            ("az://$logs/a b", "az://$logs/a b"),
            ("file:/srv/logs", "file:/srv/logs"),
            ("file:///srv/logs", "file:/srv/logs"),
        ] {
            let location: Location = text.parse().unwrap();
            assert_eq!(location.to_string(), shown);
        }
        for (text, what) in [
            ("logs", "no scheme"),
            ("http://logs", "unknown"),
            ("s3:logs", "//"),
            ("s3://", "names none"),
            ("s3:///a", "names none"),
            ("s3://my logs", "characters"),
            ("s3://lögs/a", "characters"),
            ("s3://a/b//c", "empty part"),
            ("s3://a/../c", "dots"),
            ("s3://key:secret@logs", "environment"),
            ("s3://logs?region=x", "environment"),
            ("file:logs", "not absolute"),
            ("file://host/logs", "not absolute"),
        ] {
            let error = text.parse::<Location>().unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
