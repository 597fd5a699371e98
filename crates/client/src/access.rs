//! The credentials that a client shows to servers, and the authorities that it believes.
//!
//! A secret of a file is read again when a server refuses it: a client that goes on for months uses the token that
//! has taken the place of an older one.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

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

/// The file of a secret.
enum SecretFile {
    Token(PathBuf),
    Credentials(Credentials),
}

impl SecretFile {
    /// The value of the header `Authorization`, marked so that it is not printed.
    fn header(&self) -> Result<HeaderValue, ClientError> {
        match self {
            SecretFile::Token(path) => bearer(&read(path)?, || path.display().to_string()),
            SecretFile::Credentials(credentials) => {
                let origin = || credentials.path().display().to_string();
                let mut value = header_value(&credentials.header()?, origin)?;
                value.set_sensitive(true);
                Ok(value)
            }
        }
    }
}

/// The value of the header `Authorization`, and its file.
struct Authorization {
    value: Mutex<HeaderValue>,
    /// None if it is of a variable, which does not change.
    file: Option<SecretFile>,
}

impl Authorization {
    fn value(&self) -> HeaderValue {
        let value = self.value.lock();
        value.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes what the file has now. What cannot be read changes nothing: the refusal is reported.
    fn renew(&self) {
        let read = self.file.as_ref().map(SecretFile::header);
        if let Some(Ok(new)) = read {
            *self.value.lock().unwrap_or_else(PoisonError::into_inner) = new;
        }
    }
}

/// What is shown to servers, and which are believed. Nothing and nobody by default.
#[derive(Clone, Default)]
pub struct Access {
    authorization: Option<Arc<Authorization>>,
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
        let (value, file) = match (token_file, variable) {
            (Some(path), _) => {
                let file = SecretFile::Token(path.to_owned());
                (file.header()?, Some(file))
            }
            (None, Some(token)) => (bearer(token, || TOKEN_VARIABLE.to_owned())?, None),
            (None, None) => return Ok(Access::default()),
        };
        Ok(Access::showing(value, file))
    }

    fn showing(value: HeaderValue, file: Option<SecretFile>) -> Access {
        let value = Mutex::new(value);
        Access {
            authorization: Some(Arc::new(Authorization { value, file })),
            tenant: None,
            tls: None,
        }
    }

    /// Credentials for another system, and the tenant for `X-Scope-OrgID`.
    ///
    /// # Errors
    /// When a file cannot be read, or has nothing that fits a header.
    pub fn of_credentials(
        credentials: Option<&Credentials>,
        tenant: Option<&str>,
    ) -> Result<Access, ClientError> {
        let mut access = match credentials {
            None => Access::default(),
            Some(credentials) => {
                let file = SecretFile::Credentials(credentials.clone());
                Access::showing(file.header()?, Some(file))
            }
        };
        let tenant = tenant.map(|tenant| header_value(tenant, || "the tenant".to_owned()));
        access.tenant = tenant.transpose()?;
        Ok(access)
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
        if let Some(authorization) = &self.authorization {
            let headers = request.headers_mut();
            headers.insert(header::AUTHORIZATION, authorization.value());
        }
        if let Some(value) = &self.tenant {
            request.headers_mut().insert(TENANT, value.clone());
        }
        let response = next.handle(request)?;
        let is_refused = matches!(response.status().as_u16(), 401 | 403);
        if let Some(authorization) = self.authorization.as_ref().filter(|_| is_refused) {
            authorization.renew();
        }
        Ok(response)
    }
}

/// The header of a token, which is one word.
fn bearer(token: &str, origin: impl FnOnce() -> String) -> Result<HeaderValue, ClientError> {
    let token = token.trim();
    let is_word = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    let value = HeaderValue::try_from(format!("Bearer {token}"));
    let (true, Ok(mut value)) = (is_word, value) else {
        return Err(ClientError::NoToken { origin: origin() });
    };
    value.set_sensitive(true);
    Ok(value)
}

/// A header of any text but an empty one.
fn header_value(text: &str, origin: impl FnOnce() -> String) -> Result<HeaderValue, ClientError> {
    let value = HeaderValue::try_from(text).ok();
    let value = value.filter(|_| !text.is_empty());
    value.ok_or_else(|| ClientError::NoToken { origin: origin() })
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

    fn header(access: &Access) -> Option<String> {
        let value = access.authorization.as_ref()?.value();
        value.to_str().ok().map(str::to_owned)
    }

    #[test]
    fn a_token_is_one_word_of_a_file_or_variable() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        std::fs::write(&path, "lp_a_b\n").unwrap();
        let of_file = Access::new(Some(&path), Some("other")).unwrap();
        assert_eq!(header(&of_file).as_deref(), Some("Bearer lp_a_b"));
        assert!(!format!("{of_file:?}").contains("lp_a"), "it is not shown");
        let of_variable = Access::new(None, Some(" x ")).unwrap();
        assert_eq!(header(&of_variable).as_deref(), Some("Bearer x"));
        assert_eq!(header(&Access::new(None, None).unwrap()), None);
        for bad in ["", " ", "a b", "a\nb", "ä"] {
            let error = Access::new(None, Some(bad)).unwrap_err().to_string();
            assert!(error.starts_with("LOGPOND_TOKEN"), "{error}");
        }
        let missing = Access::new(Some(&directory.path().join("none")), None);
        assert!(matches!(missing, Err(ClientError::TokenFile { .. })));
    }

    #[test]
    fn a_secret_that_is_refused_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        std::fs::write(&path, "old\n").unwrap();
        let access = Access::new(Some(&path), None).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let statuses = ["200", "401", "403", "401", "200"];
            statuses.map(|status| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = [0; 1000];
                let read = stream.read(&mut head).unwrap();
                let answer = format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
                );
                std::io::Write::write_all(&mut stream, answer.as_bytes()).unwrap();
                let head = String::from_utf8_lossy(&head[..read]).to_ascii_lowercase();
                let shown = head
                    .lines()
                    .find_map(|line| line.strip_prefix("authorization: bearer "));
                shown.map(str::to_owned)
            })
        });
        let agent = crate::agent(None, &access);
        for next in ["middle", "", "two words", "new", "never"] {
            std::fs::write(&path, next).unwrap();
            agent.get(&url).call().unwrap();
        }
        // After a success nothing is read, and what is no token changes nothing.
        let shown = ["old", "old", "old", "old", "new"];
        assert_eq!(
            server.join().unwrap(),
            shown.map(|token| Some(token.to_owned()))
        );
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
            assert_eq!(header(&access).as_deref(), Some(wanted));
            assert_eq!(access.tenant.unwrap(), "team");
        }
        assert!(of("\n", &bearer).is_err());
        assert!(Access::of_credentials(None, Some("a\nb")).is_err());
        assert_eq!(header(&Access::of_credentials(None, None).unwrap()), None);
    }
}
