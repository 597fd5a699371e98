//! Stores of each vendor, set up as its own tools are.

use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
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
use crate::transport::Transport;

/// A request is tried again this often, after pauses that grow to [`PAUSE_MAX`].
const RETRIES_MAX: usize = 6;

/// The first pause.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// No attempt begins later than this after the first one.
const RETRY_TIME_MAX: Duration = Duration::from_secs(30);

/// The variables that hold URLs of stores and of what gives credentials for them.
const ENDPOINTS: [&str; 12] = [
    "AWS_ENDPOINT",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_STS",
    "AWS_METADATA_ENDPOINT",
    "AZURE_ENDPOINT",
    "AZURE_STORAGE_ENDPOINT",
    "AZURE_AUTHORITY_HOST",
    "AZURE_STORAGE_AUTHORITY_HOST",
    "AZURE_IDENTITY_ENDPOINT",
    "AZURE_MSI_ENDPOINT",
    "GOOGLE_BASE_URL",
];

/// The names that Azure's command line has for what the library knows by others.
const AZURE_NAMES: [(&str, AzureConfigKey); 2] = [
    ("AZURE_STORAGE_ACCOUNT", AzureConfigKey::AccountName),
    ("AZURE_STORAGE_KEY", AzureConfigKey::AccessKey),
];

/// A store at this place. A directory is made if it is not there.
pub(crate) fn open(
    location: &Location,
    variables: &[(String, String)],
    attempts: &Arc<AtomicU64>,
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
    check_endpoints(vendor, variables)?;
    let transport = Transport::new(Arc::clone(attempts))?;
    let store = match vendor {
        Vendor::S3 => s3(bucket, variables, transport),
        Vendor::Gcs => gcs(bucket, variables, transport),
        Vendor::Azure => {
            check_account(variables)?;
            azure(bucket, variables, transport)
        }
    };
    let store = store.map_err(io::Error::other)?;
    Ok(if prefix.is_empty() {
        store
    } else {
        Arc::new(PrefixStore::new(store, Path::from(prefix.as_str())))
    })
}

/// Refuses endpoints that are no URLs: the library takes them, and panics when the first request is made.
fn check_endpoints(vendor: Vendor, variables: &[(String, String)]) -> io::Result<()> {
    let endpoints = variables
        .iter()
        .filter(|(name, _)| name.starts_with(prefix(vendor)) && ENDPOINTS.contains(&name.as_str()));
    for (name, text) in endpoints {
        let url: Option<Uri> = text.parse().ok();
        if !url.is_some_and(|url| matches!(url.scheme_str(), Some("http" | "https"))) {
            let what = format!("{name} is {text:?}, which is no URL; write https://HOST:PORT");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
    }
    Ok(())
}

/// Refuses to guess whose container is meant.
fn check_account(variables: &[(String, String)]) -> io::Result<()> {
    let is_account = |key| {
        matches!(
            key,
            AzureConfigKey::AccountName | AzureConfigKey::UseEmulator
        )
    };
    if azure_settings(variables).any(|(key, _)| is_account(key)) {
        return Ok(());
    }
    let what = "AZURE_STORAGE_ACCOUNT_NAME is not set; it names the account that has the container";
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// What to say of a failure where no credentials were given: whose are used then.
pub(crate) fn without_credentials(
    location: &Location,
    variables: &[(String, String)],
) -> Option<&'static str> {
    use AmazonS3ConfigKey as S3;
    use AzureConfigKey as Azure;
    use GoogleConfigKey as Gcs;
    let Location::Remote { vendor, .. } = location else {
        return None;
    };
    let (is_given, hint) = match vendor {
        Vendor::S3 => (
            known(variables, "AWS_").any(|(key, _)| {
                matches!(
                    key,
                    S3::AccessKeyId
                        | S3::WebIdentityTokenFile
                        | S3::ContainerCredentialsRelativeUri
                        | S3::ContainerCredentialsFullUri
                        | S3::SkipSignature
                )
            }),
            "the environment has no AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (files in ~/.aws are not read), \
             so this machine's role is to give credentials",
        ),
        Vendor::Gcs => (
            known(variables, "GOOGLE_")
                .any(|(key, _)| !matches!(key, Gcs::BaseUrl | Gcs::Bucket | Gcs::Client(_))),
            "the environment has no GOOGLE_SERVICE_ACCOUNT or GOOGLE_APPLICATION_CREDENTIALS, so gcloud's \
             credentials or this machine's role are to do",
        ),
        Vendor::Azure => (
            azure_settings(variables).any(|(key, _)| {
                matches!(
                    key,
                    Azure::AccessKey
                        | Azure::SasKey
                        | Azure::Token
                        | Azure::ClientSecret
                        | Azure::FederatedTokenFile
                        | Azure::UseAzureCli
                        | Azure::UseEmulator
                        | Azure::SkipSignature
                )
            }),
            "the environment has no AZURE_STORAGE_ACCOUNT_KEY, so this machine's identity is to give credentials",
        ),
    };
    (!is_given).then_some(hint)
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

/// What the names of a vendor's variables begin with.
fn prefix(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::S3 => "AWS_",
        Vendor::Gcs => "GOOGLE_",
        Vendor::Azure => "AZURE_",
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

/// Azure's settings; what has its command line's name gives way to the library's.
fn azure_settings(variables: &[(String, String)]) -> impl Iterator<Item = (AzureConfigKey, &str)> {
    let others = variables.iter().filter_map(|(name, value)| {
        let (_, key) = AZURE_NAMES.iter().find(|(other, _)| other == name)?;
        Some((*key, value.as_str()))
    });
    others.chain(known(variables, "AZURE_"))
}

fn azure(
    bucket: &str,
    variables: &[(String, String)],
    transport: Transport,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    let builder = MicrosoftAzureBuilder::new()
        .with_retry(retry())
        .with_http_connector(transport);
    let builder = azure_settings(variables).fold(builder, |builder, (key, value)| {
        builder.with_config(key, value)
    });
    Ok(Arc::new(builder.with_container_name(bucket).build()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(all: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        all.iter().map(owned).collect()
    }

    #[test]
    fn endpoints_are_urls() {
        let check = |vendor, name: &str, text: &str| {
            check_endpoints(vendor, &variables(&[(name, text)])).map_err(|error| error.to_string())
        };
        for (vendor, name) in [
            (Vendor::S3, "AWS_ENDPOINT_URL"),
            (Vendor::Gcs, "GOOGLE_BASE_URL"),
            (Vendor::Azure, "AZURE_STORAGE_ENDPOINT"),
        ] {
            for text in ["https://s3.example.com", "http://127.0.0.1:9000/"] {
                assert_eq!(check(vendor, name, text), Ok(()));
            }
            for text in [
                "127.0.0.1:9000",
                "minio:9000",
                "minio",
                "s3://logs",
                "https://a b",
                "",
            ] {
                let said = check(vendor, name, text).unwrap_err();
                assert!(said.contains(name) && said.contains("https://"), "{said}");
            }
        }
        for name in [
            "AWS_REGION",
            "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
            "GOOGLE_BASE_URL",
        ] {
            assert_eq!(check(Vendor::S3, name, "true"), Ok(()));
        }
    }

    #[test]
    fn azure_accounts_have_a_name() {
        let said = check_account(&variables(&[("AZURE_STORAGE_ACCOUNT_KEY", "a")]));
        let said = said.unwrap_err().to_string();
        assert!(said.contains("AZURE_STORAGE_ACCOUNT_NAME"), "{said}");
        for name in [
            "AZURE_STORAGE_ACCOUNT_NAME",
            "AZURE_STORAGE_ACCOUNT",
            "AZURE_STORAGE_USE_EMULATOR",
        ] {
            assert!(check_account(&variables(&[(name, "logs")])).is_ok());
        }
        let both = variables(&[
            ("AZURE_STORAGE_ACCOUNT_NAME", "library"),
            ("AZURE_STORAGE_ACCOUNT", "command"),
        ]);
        let last = azure_settings(&both).last();
        assert_eq!(last, Some((AzureConfigKey::AccountName, "library")));
    }

    #[test]
    fn what_no_credentials_were_given_for() {
        let hint = |place: &str, all: &[(&str, &str)]| {
            without_credentials(&place.parse().unwrap(), &variables(all))
        };
        for (place, other, given) in [
            ("s3://logs", "AWS_REGION", "AWS_ACCESS_KEY_ID"),
            (
                "s3://logs",
                "AWS_ENDPOINT_URL",
                "AWS_WEB_IDENTITY_TOKEN_FILE",
            ),
            ("gs://logs", "GOOGLE_BASE_URL", "GOOGLE_SERVICE_ACCOUNT"),
            (
                "gs://logs",
                "GOOGLE_BUCKET",
                "GOOGLE_APPLICATION_CREDENTIALS",
            ),
            ("az://logs", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY"),
            ("az://logs", "AZURE_CLIENT_ID", "AZURE_STORAGE_SAS_TOKEN"),
        ] {
            assert!(hint(place, &[(other, "a")]).is_some(), "{place} {other}");
            assert_eq!(hint(place, &[(other, "a"), (given, "b")]), None);
        }
        assert_eq!(hint("file:/srv/logs", &[]), None);
    }
}
