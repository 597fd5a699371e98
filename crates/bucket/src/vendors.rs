//! Stores of each vendor, set up as its own tools are.

use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};

use crate::location::{Location, Vendor};
use crate::transport::{Attempts, Transport};

/// A request is tried again this often, after pauses that grow to [`PAUSE_MAX`].
const RETRIES_MAX: usize = 6;

/// The first pause.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// No attempt begins later than this after the first one.
const RETRY_TIME_MAX: Duration = Duration::from_secs(30);

/// The variables that hold URLs of S3 and of what gives credentials for it.
const ENDPOINTS: [&str; 5] = [
    "AWS_ENDPOINT",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_STS",
    "AWS_METADATA_ENDPOINT",
];

/// A store at this place. A directory is made if it is not there.
pub(crate) fn open(
    location: &Location,
    variables: &[(String, String)],
    attempts: &Arc<Attempts>,
) -> io::Result<Arc<dyn ObjectStore>> {
    let (vendor, bucket, prefix) = match location {
        Location::Directory(path) => {
            std::fs::create_dir_all(path)?;
            let directory = LocalFileSystem::new_with_prefix(path).map_err(io::Error::other)?;
            return Ok(Arc::new(directory.with_fsync(true)));
        }
        Location::Remote {
            vendor,
            bucket,
            prefix,
        } => (*vendor, bucket, prefix),
    };
    let transport = Transport::new(Arc::clone(attempts))?;
    let store = match vendor {
        Vendor::S3 => {
            check_endpoints(variables)?;
            s3(bucket, variables, transport)
        }
        Vendor::Gcs => gcs(bucket, variables, transport),
        Vendor::Azure => azure(bucket, variables, transport),
    };
    let store = store.map_err(io::Error::other)?;
    Ok(match prefix.is_empty() {
        true => store,
        false => Arc::new(PrefixStore::new(store, Path::from(prefix.as_str()))),
    })
}

/// Refuses endpoints that are no URLs: the library takes them, and panics when the first request is made.
fn check_endpoints(variables: &[(String, String)]) -> io::Result<()> {
    let endpoints = variables
        .iter()
        .filter(|(name, _)| ENDPOINTS.contains(&name.as_str()));
    for (name, text) in endpoints {
        let url: Option<Uri> = text.parse().ok();
        if !url.is_some_and(|url| matches!(url.scheme_str(), Some("http" | "https"))) {
            let what = format!("{name} is {text:?}, which is no URL; write https://HOST:PORT");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
    }
    Ok(())
}

fn retry() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: PAUSE_MIN,
            max_backoff: PAUSE_MAX,
            base: 2.0,
        },
        max_retries: RETRIES_MAX,
        retry_timeout: RETRY_TIME_MAX,
    }
}

/// The variables that a vendor's builder knows: those with its prefix, in small letters.
fn known<'a, K: FromStr>(
    variables: &'a [(String, String)],
    prefix: &str,
) -> impl Iterator<Item = (K, &'a str)> {
    let ours = variables
        .iter()
        .filter(move |(name, _)| name.starts_with(prefix));
    ours.filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value.as_str())))
}

fn s3(
    bucket: &str,
    variables: &[(String, String)],
    transport: Transport,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    // Whoever writes an endpoint of `http://` means it.
    let is_plain = variables
        .iter()
        .any(|(name, url)| name.starts_with("AWS_ENDPOINT") && url.starts_with("http://"));
    let builder = AmazonS3Builder::new()
        .with_allow_http(is_plain)
        .with_retry(retry())
        .with_http_connector(transport);
    let settings = known::<AmazonS3ConfigKey>(variables, "AWS_");
    let builder = settings.fold(builder, |builder, (key, value)| {
        builder.with_config(key, value)
    });
    Ok(Arc::new(builder.with_bucket_name(bucket).build()?))
}

fn gcs(
    bucket: &str,
    variables: &[(String, String)],
    transport: Transport,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    let builder = GoogleCloudStorageBuilder::new()
        .with_retry(retry())
        .with_http_connector(transport);
    let settings = known::<GoogleConfigKey>(variables, "GOOGLE_");
    let builder = settings.fold(builder, |builder, (key, value)| {
        builder.with_config(key, value)
    });
    Ok(Arc::new(builder.with_bucket_name(bucket).build()?))
}

fn azure(
    bucket: &str,
    variables: &[(String, String)],
    transport: Transport,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    let builder = MicrosoftAzureBuilder::new()
        .with_retry(retry())
        .with_http_connector(transport);
    let settings = known::<AzureConfigKey>(variables, "AZURE_");
    let builder = settings.fold(builder, |builder, (key, value)| {
        builder.with_config(key, value)
    });
    Ok(Arc::new(builder.with_container_name(bucket).build()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_urls() {
        let check = |name: &str, text: &str| {
            check_endpoints(&[(name.to_owned(), text.to_owned())])
                .map_err(|error| error.to_string())
        };
        for text in ["https://s3.example.com", "http://127.0.0.1:9000/"] {
            assert_eq!(check("AWS_ENDPOINT_URL", text), Ok(()));
        }
        for text in [
            "127.0.0.1:9000",
            "minio:9000",
            "minio",
            "s3://logs",
            "https://a b",
            "",
        ] {
            let said = check("AWS_ENDPOINT_URL", text).unwrap_err();
            assert!(
                said.contains("AWS_ENDPOINT_URL") && said.contains("https://"),
                "{said}"
            );
        }
        for name in ["AWS_REGION", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] {
            assert_eq!(check(name, "true"), Ok(()));
        }
    }
}
