//! Where the bucket is.

use std::path::{Path, PathBuf};
use std::time::Duration;

use logpond_bucket::{Location, LocationError};

use super::values::{Values, off_or};
use super::{SettingsError, parse_age, parse_bytes};

/// The directory below the data directory for what was read from the bucket.
pub const BUCKET_CACHE: &str = "bucket-cache";

/// What the names of variables begin with that say how a vendor's store is reached.
const VENDOR_PREFIXES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// How much of what is in the bucket stays on the local disk. `None` is as much as there is room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Local {
    /// For so long after its receive time, in nanoseconds.
    pub age_ns: Option<i64>,
    /// Up to so many bytes.
    pub size_bytes: Option<u64>,
}

/// Where the bucket is, and what of it may be kept here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketSettings {
    /// Where it is.
    pub location: Location,
    /// The directory for what was read.
    pub cache: PathBuf,
    /// How much of it.
    pub cache_bytes: u64,
    /// How much stays on the local disk anyway.
    pub local: Local,
    /// How often at most the table is brought up to date that other engines read; `None`: never.
    pub table: Option<Duration>,
}

/// The environment's variables that say how a vendor's store is reached.
pub fn vendor_variables() -> Vec<(String, String)> {
    let all = std::env::vars_os();
    let texts =
        all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts
        .filter(|(name, _)| {
            VENDOR_PREFIXES
                .iter()
                .any(|prefix| name.starts_with(prefix))
        })
        .collect()
}

impl Values<'_> {
    /// The bucket, if there is one, beside this data directory.
    pub(super) fn bucket(&self, data: &Path) -> Result<Option<BucketSettings>, SettingsError> {
        let cache_bytes = self.read("bucket-cache", |text| {
            parse_bytes(text).map_err(|error| error.to_string())
        })?;
        // A wrong value is refused also while there is no bucket.
        let local = self.local()?;
        let table = self.read("open-table", |text| off_or(text, parse_age))?;
        let location = self.read("bucket", |text| match text {
            "off" | "" => Ok(None),
            text => {
                let location = text.parse().map(Some);
                location.map_err(|error: LocationError| error.to_string())
            }
        })?;
        let Some(location) = location else {
            return Ok(None);
        };
        Ok(Some(BucketSettings {
            location,
            cache: data.join(BUCKET_CACHE),
            cache_bytes,
            local,
            table,
        }))
    }

    /// How much of what is in the bucket stays on the local disk.
    fn local(&self) -> Result<Local, SettingsError> {
        let age = self.read("local-age", |text| off_or(text, parse_age))?;
        Ok(Local {
            age_ns: age.map(|age| i64::try_from(age.as_nanos()).unwrap_or(i64::MAX)),
            size_bytes: self.read("local-size", |text| off_or(text, parse_bytes))?,
        })
    }
}
