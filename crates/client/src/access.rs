//! What a client shows to servers, and which of them it believes.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ureq::http::{HeaderName, HeaderValue, Request, Response, header};
use ureq::middleware::{Middleware, MiddlewareNext};
use ureq::tls::TlsConfig;
use ureq::{Body, SendBody};

use super::{ClientError, trust};

/// The variable that holds a token.
pub const TOKEN_VARIABLE: &str = "LOGPOND_TOKEN";

/// The longest file that can hold a token; ours have 45 bytes, other servers' may be longer.
const TOKEN_BYTES_MAX: u64 = 4096;

/// The header with the tenant, as Loki reads it.
const TENANT: HeaderName = HeaderName::from_static("x-scope-orgid");

/// Credentials for another system. Secrets are in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// A user with a password.
    Basic {
        /// The user.
        user: String,
        /// The file with the password.
        password_file: PathBuf,
    },
    /// The file with a token.
    Bearer(PathBuf),
    /// The file with an API key of Elasticsearch: `id:key`, or both encoded as Base64.
    ApiKey(PathBuf),
}

impl Credentials {
    fn path(&self) -> &Path {
        match self {
            Credentials::Basic { password_file, .. } => password_file,
            Credentials::Bearer(path) | Credentials::ApiKey(path) => path,
        }
    }

    /// The value of the header `Authorization`.
    fn header(&self) -> Result<String, ClientError> {
        let text = read(self.path())?;
        let secret = text.trim_end_matches(['\n', '\r']);
        if secret.is_empty() {
            let origin = self.path().display().to_string();
            return Err(ClientError::NoToken { origin });
        }
        Ok(match self {
            Credentials::Basic { user, .. } => {
                format!("Basic {}", STANDARD.encode(format!("{user}:{secret}")))
            }
            Credentials::Bearer(_) => format!("Bearer {}", secret.trim()),
            Credentials::ApiKey(_) if secret.contains(':') => {
                format!("ApiKey {}", STANDARD.encode(secret.trim()))
            }
            Credentials::ApiKey(_) => format!("ApiKey {}", secret.trim()),
        })
    }
}

/// What is shown to servers, and which are believed. Nothing and nobody by default.
#[derive(Clone, Default)]
pub struct Access {
    /// The value of the header, marked so that it is not printed.
    authorization: Option<HeaderValue>,
    /// The tenant, for servers with tenants.
    tenant: Option<HeaderValue>,
    /// There is none where no address needs it: the authorities of a system are a megabyte.
    tls: Option<TlsConfig>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Access(token: {})", self.authorization.is_some())
    }
}

impl Access {
    /// The token of a file, or else of the variable's text; neither is no token.
    ///
    /// # Errors
    /// When the file cannot be read, or holds no single word.
    pub fn new(token_file: Option<&Path>, variable: Option<&str>) -> Result<Access, ClientError> {
        let (token, origin) = match (token_file, variable) {
            (Some(path), _) => (read(path)?, path.display().to_string()),
            (None, Some(token)) => (token.to_owned(), TOKEN_VARIABLE.to_owned()),
            (None, None) => return Ok(Access::default()),
        };
        let token = token.trim();
        let is_word = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let value = HeaderValue::try_from(format!("Bearer {token}"));
        let (true, Ok(mut value)) = (is_word, value) else {
            return Err(ClientError::NoToken { origin });
        };
        value.set_sensitive(true);
        Ok(Access {
            authorization: Some(value),
            tenant: None,
            tls: None,
        })
    }

    /// Credentials for another system, and the tenant for `X-Scope-OrgID`.
    ///
    /// # Errors
    /// When a file cannot be read, or has nothing that fits a header.
    pub fn of_credentials(
        credentials: Option<&Credentials>,
        tenant: Option<&str>,
    ) -> Result<Access, ClientError> {
        let value = |text: &str, origin: String| {
            let value = HeaderValue::try_from(text)
                .ok()
                .filter(|_| !text.is_empty());
            value.ok_or(ClientError::NoToken { origin })
        };
        let authorization = match credentials {
            None => None,
            Some(credentials) => {
                let path = credentials.path();
                let mut value = value(&credentials.header()?, path.display().to_string())?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let tenant = tenant.map(|tenant| value(tenant, "the tenant".to_owned()));
        Ok(Access {
            authorization,
            tenant: tenant.transpose()?,
            tls: None,
        })
    }

    /// Believes servers whose certificate is of an authority in this file, or without one of an
    /// authority that the system trusts.
    ///
    /// # Errors
    /// When the file cannot be used, or the system trusts nobody.
    pub fn trust(&mut self, authorities: Option<&Path>) -> Result<(), ClientError> {
        self.tls = Some(trust::tls_config(authorities)?);
        Ok(())
    }

    /// How encrypted connections are made.
    pub(super) fn tls(&self) -> Option<TlsConfig> {
        self.tls.clone()
    }
}

/// Adds what is shown to every request.
impl Middleware for Access {
    fn handle(
        &self,
        mut request: Request<SendBody>,
        next: MiddlewareNext,
    ) -> Result<Response<Body>, ureq::Error> {
        if let Some(value) = &self.authorization {
            let headers = request.headers_mut();
            headers.insert(header::AUTHORIZATION, value.clone());
        }
        if let Some(value) = &self.tenant {
            request.headers_mut().insert(TENANT, value.clone());
        }
        next.handle(request)
    }
}

fn read(path: &Path) -> Result<String, ClientError> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(TOKEN_BYTES_MAX).read_to_string(&mut text))
        .map_err(|source| ClientError::TokenFile {
            path: path.to_owned(),
            source,
        })?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(access: &Access) -> Option<&str> {
        access.authorization.as_ref()?.to_str().ok()
    }

    #[test]
    fn a_token_is_one_word_of_a_file_or_variable() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        std::fs::write(&path, "lp_a_b\n").unwrap();
        let of_file = Access::new(Some(&path), Some("other")).unwrap();
        assert_eq!(header(&of_file), Some("Bearer lp_a_b"));
        assert!(!format!("{of_file:?}").contains("lp_a"), "it is not shown");
        let of_variable = Access::new(None, Some(" x ")).unwrap();
        assert_eq!(header(&of_variable), Some("Bearer x"));
        assert_eq!(header(&Access::new(None, None).unwrap()), None);
        for bad in ["", " ", "a b", "a\nb", "ä"] {
            let error = Access::new(None, Some(bad)).unwrap_err().to_string();
            assert!(error.starts_with("LOGPOND_TOKEN"), "{error}");
        }
        let missing = Access::new(Some(&directory.path().join("none")), None);
        assert!(matches!(missing, Err(ClientError::TokenFile { .. })));
    }

    #[test]
    fn other_systems_get_their_credentials() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        let of = |text: &str, credentials: &Credentials| {
            std::fs::write(&path, text).unwrap();
            Access::of_credentials(Some(credentials), Some("team"))
        };
        let basic = Credentials::Basic {
            user: "elastic".to_owned(),
            password_file: path.clone(),
        };
        let (bearer, key) = (
            Credentials::Bearer(path.clone()),
            Credentials::ApiKey(path.clone()),
        );
        let table = [
            ("pass word\n", &basic, "Basic ZWxhc3RpYzpwYXNzIHdvcmQ="),
            ("abc\n", &bearer, "Bearer abc"),
            ("id:key\n", &key, "ApiKey aWQ6a2V5"),
            ("aWQ6a2V5\n", &key, "ApiKey aWQ6a2V5"),
        ];
        for (text, credentials, wanted) in table {
            let access = of(text, credentials).unwrap();
            assert_eq!(header(&access), Some(wanted));
            assert_eq!(access.tenant.unwrap(), "team");
        }
        assert!(of("\n", &bearer).is_err());
        assert!(Access::of_credentials(None, Some("a\nb")).is_err());
        assert_eq!(header(&Access::of_credentials(None, None).unwrap()), None);
    }
}
