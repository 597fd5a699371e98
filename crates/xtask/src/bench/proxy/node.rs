//! The application of the article on a proxy in Rust, written anew: node.js that sends bodies back,
//! over HTTP, over HTTPS by itself, or over HTTP at a Unix socket behind a proxy.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use super::peers::Certificate;
use super::process::Tree;
use crate::run::{Outcome, find_program, free_address, output};

/// Streams each body back as it comes. Nothing ends a connection but its client.
const SCRIPT: &str = "\
'use strict';
const fs = require('fs');
const [kind, host, port, chain, key] = process.argv.slice(2);
const echo = (request, response) => {
  response.writeHead(200, { 'Content-Length': request.headers['content-length'] || 0 });
  request.pipe(response);
};
const tls = () => ({
  cert: fs.readFileSync(chain),
  key: fs.readFileSync(key),
  minVersion: 'TLSv1.3',
  ciphers: 'TLS_AES_256_GCM_SHA384',
  ecdhCurve: 'X25519',
});
const server = kind === 'https'
  ? require('https').createServer(tls(), echo)
  : require('http').createServer(echo);
server.keepAliveTimeout = 0;
server.requestTimeout = 0;
server.listen(kind === 'unix'
  ? { path: host, readableAll: true, writableAll: true, backlog: 4096 }
  : { host, port: Number(port), backlog: 4096 });
";

/// The listener of node.js.
#[derive(Clone, Copy)]
pub(super) enum ServeMode<'s> {
    Http,
    Https(&'s Certificate),
    Unix(&'s Path),
}

/// node.js that listens, at an address if it is not a socket's path.
pub(super) struct Node {
    pub(super) tree: Tree,
    pub(super) address: Option<SocketAddr>,
}

/// The version of node.js, without its letter; none where there is none.
pub(super) fn version() -> Option<String> {
    let said = output(Command::new(find_program("node")?).arg("--version")).ok()?;
    Some(said.trim().trim_start_matches('v').to_owned())
}

impl Node {
    /// Starts it on a core, with files in this directory.
    pub(super) fn start(served: ServeMode, core: Option<usize>, directory: &Path) -> Outcome<Node> {
        let node = find_program("node").ok_or("node has gone")?;
        fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        let script = directory.join("echo.js");
        fs::write(&script, SCRIPT).map_err(|e| format!("{}: {e}", script.display()))?;
        let mut command = Command::new(node);
        command.arg(script);
        let said = directory.join("said");
        if let ServeMode::Unix(path) = served {
            command.arg("unix").arg(path);
            let is_ready = || UnixStream::connect(path).is_ok();
            let tree = Tree::start(&command, core, &said, is_ready)?;
            return Ok(Node {
                tree,
                address: None,
            });
        }
        let address: SocketAddr = free_address()?
            .parse()
            .map_err(|e| format!("no address: {e}"))?;
        let kind = match served {
            ServeMode::Https(_) => "https",
            _ => "http",
        };
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        command.args([kind, &host, &port]);
        if let ServeMode::Https(certificate) = served {
            command.args([&certificate.chain, &certificate.key]);
        }
        let is_ready = || TcpStream::connect(address).is_ok();
        Ok(Node {
            tree: Tree::start(&command, core, &said, is_ready)?,
            address: Some(address),
        })
    }
}
