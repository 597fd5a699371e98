//! A server that speaks S3: moto, a kept reimplementation in Python.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use logpond_bucket::{Location, Store};

/// A running server with an empty bucket; ends with this.
pub(crate) struct S3Server {
    process: Child,
    address: SocketAddr,
}

impl S3Server {
    /// Starts one on a free port. `None` if there is none here, which is said.
    pub(crate) fn start() -> Option<S3Server> {
        let Some(python) = std::env::var_os("LOGPOND_PYTHON") else {
            assert_ne!(
                std::env::var("CI").as_deref(),
                Ok("true"),
                "LOGPOND_PYTHON is not set"
            );
            eprintln!("skipped: LOGPOND_PYTHON names no Python with moto, see ./test");
            return None;
        };
        let mut process = Command::new(python)
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let mut lines = BufReader::new(process.stderr.take().expect("it is piped")).lines();
        let running = |line: std::io::Result<String>| {
            let line = line.expect("it says UTF-8");
            let (_, address) = line.split_once("http://")?;
            address.trim().parse().ok()
        };
        let address = lines
            .by_ref()
            .find_map(running)
            .expect("moto says where it is");
        // What it says of requests must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let server = S3Server { process, address };
        let bucket = Command::new("curl")
            .args(["-sS", "-f", "-X", "PUT", &format!("http://{address}/logs")])
            .status();
        assert!(bucket.expect("curl starts").success());
        Some(server)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its bucket, reached at this address.
    pub(crate) fn store(&self, address: SocketAddr, prefix: &str) -> Store {
        let location: Location = format!("s3://logs/{prefix}").parse().expect("a place");
        let variables = [
            ("AWS_ENDPOINT_URL", format!("http://{address}")),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value));
        Store::open(&location, &variables).expect("a store")
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
