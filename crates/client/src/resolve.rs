//! Addresses of host names for HTTP requests.
//!
//! An IP literal needs no thread. A name is looked up on a thread of its own, because the system's
//! lookup has no time limit. If the system gives no thread, the request fails; the default resolver
//! of `ureq` panics there.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Error};

/// Addresses of one name that are tried; `ureq` takes no more.
const ADDRESSES_MAX: usize = 16;

/// An agent that finds addresses without a panic.
pub fn agent_of(config: Config) -> Agent {
    Agent::with_parts(config, DefaultConnector::default(), HostResolver)
}

/// Finds the addresses of the host of a URL.
#[derive(Debug)]
struct HostResolver;

impl Resolver for HostResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(Error::BadUri(format!("{uri} has no scheme or no host")));
        };
        let host = DefaultResolver::host_and_port(scheme, authority)
            .ok_or_else(|| Error::BadUri(format!("{uri} has no port")))?;
        let found = match host.parse::<SocketAddr>() {
            Ok(address) => vec![address],
            Err(_) => look_up(host, timeout)?,
        };
        let mut addresses = self.empty();
        let family = config.ip_family();
        let wanted = family.keep_wanted(found.into_iter());
        for address in wanted.take(ADDRESSES_MAX) {
            addresses.push(address);
        }
        if addresses.is_empty() {
            return Err(Error::HostNotFound);
        }
        Ok(addresses)
    }
}

fn look_up(host: String, timeout: NextTimeout) -> Result<Vec<SocketAddr>, Error> {
    let addresses = |host: &str| host.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    if timeout.after.is_not_happening() {
        return addresses(&host).map_err(Error::Io);
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    let thread = thread::Builder::new().name("lp-lookup".to_owned());
    thread.spawn(move || {
        // Nobody may wait for it any more.
        let _ = sender.send(addresses(&host));
    })?;
    match receiver.recv_timeout(*timeout.after) {
        Ok(found) => found.map_err(Error::Io),
        Err(RecvTimeoutError::Timeout) => Err(Error::Timeout(timeout.reason)),
        Err(RecvTimeoutError::Disconnected) => Err(Error::Io(io::Error::other(
            "the lookup of the host panicked",
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ureq::Timeout;
    use ureq::config::IpFamily;

    use super::*;

    fn resolve(url: &str, family: IpFamily) -> Result<Vec<SocketAddr>, String> {
        let config = Agent::config_builder().ip_family(family).build();
        let timeout = NextTimeout {
            after: Duration::from_secs(60).into(),
            reason: Timeout::Resolve,
            per_read: None,
            per_write: None,
        };
        let found = HostResolver.resolve(&url.parse().unwrap(), &config, timeout);
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.iter().copied().collect())
    }

    #[test]
    fn hosts_have_addresses() {
        let any = IpFamily::Any;
        for (url, address) in [
            ("http://127.0.0.1:7650/x", "127.0.0.1:7650"),
            ("http://127.0.0.1/", "127.0.0.1:80"),
            ("https://[::1]/", "[::1]:443"),
            ("https://user@[2001:db8::1]:8/", "[2001:db8::1]:8"),
        ] {
            assert_eq!(
                resolve(url, any),
                Ok(vec![address.parse().unwrap()]),
                "{url}"
            );
        }
        let of_name = resolve("http://localhost:1/", any).unwrap();
        let is_right = |address: &SocketAddr| address.ip().is_loopback() && address.port() == 1;
        assert!(
            !of_name.is_empty() && of_name.iter().all(is_right),
            "{of_name:?}"
        );
    }

    #[test]
    fn hosts_without_addresses_are_errors() {
        resolve("http://none.invalid/", IpFamily::Any).unwrap_err();
        let of_another_family = resolve("http://127.0.0.1/", IpFamily::Ipv6Only);
        assert_eq!(of_another_family, Err("host not found".to_owned()));
        resolve("/path", IpFamily::Any).unwrap_err();
    }
}
