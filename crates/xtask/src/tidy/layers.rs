//! Which crate may depend on which, read from the manifests.
//!
//! The members of the workspace are listed bottom first; that list is the order of layers.

use std::fs;

use super::sources::root;

/// Crates that are no part of the product, and may use everything.
const TOOLS: [&str; 3] = ["sim", "xtask", "fuzz"];

/// The crates of the workspace that a crate may use.
const ALLOWED: [(&str, &[&str]); 21] = [
    ("record", &[]),
    ("protocol", &["record"]),
    ("segment", &["record"]),
    ("search", &["record", "segment"]),
    ("cluster", &["record", "segment"]),
    ("sql", &["record", "segment", "search"]),
    ("tls", &[]),
    ("proxy", &["record", "protocol", "tls"]),
    ("bucket", &["record", "segment", "cluster", "tls"]),
    ("host", &["record", "protocol", "segment", "search", "tls"]),
    (
        "settings",
        &[
            "record", "protocol", "search", "cluster", "tls", "proxy", "bucket", "host",
        ],
    ),
    ("render", &["record", "protocol", "search", "host"]),
    ("client", &["record", "tls"]),
    ("mcp", &["record", "client"]),
    (
        "engine",
        &[
            "record", "protocol", "segment", "search", "cluster", "sql", "bucket", "host",
            "settings", "render", "client",
        ],
    ),
    (
        "listen",
        &[
            "record", "protocol", "segment", "tls", "proxy", "host", "settings", "client", "engine",
        ],
    ),
    (
        "ship",
        &[
            "record", "protocol", "segment", "host", "settings", "render", "client",
        ],
    ),
    (
        "http",
        &[
            "record", "protocol", "segment", "search", "cluster", "sql", "proxy", "host",
            "settings", "render", "client", "mcp", "engine", "listen",
        ],
    ),
    (
        "postgres",
        &["record", "sql", "host", "engine", "listen", "http"],
    ),
    (
        "node",
        &[
            "record", "protocol", "segment", "search", "cluster", "host", "render", "client",
            "engine", "listen", "http",
        ],
    ),
    (
        "logpond",
        &[
            "record", "protocol", "segment", "search", "cluster", "sql", "tls", "proxy", "bucket",
            "host", "settings", "render", "client", "mcp", "engine", "listen", "ship", "http",
            "postgres", "node",
        ],
    ),
];

/// Crates of several roles. The `pub mod` lines of `lib.rs` name the roles, bottom first: a role names only roles above
/// it in that list.
const CRATES_OF_ROLES: [&str; 6] = ["host", "engine", "listen", "ship", "node", "logpond"];

/// Dependencies that do IO, read clocks, draw random numbers, or belong to the edge of the
/// product: only the crates from `sql` up and tools may name them. Prefixes, so that `hyper-util` and
/// `clap_complete` are meant too.
const EDGE_ONLY: [&str; 36] = [
    "tokio",
    "hyper",
    "http",
    "axum",
    "tower",
    "mio",
    "futures",
    "async",
    "clap",
    "ureq",
    "reqwest",
    "rustls",
    "native-tls",
    "openssl",
    "rustix",
    "libc",
    "nix",
    "socket2",
    "rand",
    "getrandom",
    "fastrand",
    "tracing",
    "log",
    "env_logger",
    "prometheus",
    "indicatif",
    "notify",
    "serde",
    "toml",
    "anyhow",
    "crossbeam",
    "rayon",
    "tempfile",
    "memmap",
    "dirs",
    "hostname",
];

/// What a lower crate may use of these all the same, and why.
const EXCEPTIONS: [(&str, &str); 9] = [
    // The manifest in a segment's footer is JSON, so that other readers can show it.
    ("segment", "serde_json"),
    // So is what a bucket lists.
    ("cluster", "serde_json"),
    // The push APIs of others are JSON; it is read, and never written.
    ("protocol", "serde"),
    ("protocol", "serde_json"),
    // Its tests read tables of formats.
    ("protocol", "toml"),
    // DataFusion's tasks run on a runtime of their own.
    ("sql", "tokio"),
    ("sql", "futures-util"),
    ("sql", "async-trait"),
    ("sql", "tempfile"),
];

fn manifest(path: &str) -> toml::Table {
    let path = root().join(path);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.parse()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn members() -> Vec<String> {
    let workspace = manifest("Cargo.toml");
    let list = workspace["workspace"]["members"]
        .as_array()
        .expect("a list");
    list.iter()
        .map(|m| {
            m.as_str()
                .expect("a path")
                .trim_start_matches("crates/")
                .to_string()
        })
        .collect()
}

/// Names of all dependencies of a crate: normal, for tests, for builds, and per target.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let mut names = Vec::new();
    let mut tables = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(|t| t.as_table()) {
        tables.extend(targets.values().filter_map(|t| t.as_table()));
    }
    for table in tables {
        for key in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(list) = table.get(key).and_then(|d| d.as_table()) else {
                continue;
            };
            for (name, value) in list {
                let package = value.get("package").and_then(|p| p.as_str());
                names.push(package.unwrap_or(name).to_string());
            }
        }
    }
    names
}

fn is_edge_only(dependency: &str) -> bool {
    EDGE_ONLY.iter().any(|prefix| {
        dependency
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
    })
}

#[test]
fn members_are_in_layer_order() {
    let members = members();
    let layered: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    let listed: Vec<&str> = members
        .iter()
        .map(String::as_str)
        .filter(|m| layered.contains(m))
        .collect();
    assert_eq!(listed, layered, "members of Cargo.toml, bottom layer first");
    for tool in TOOLS {
        assert!(members.iter().any(|m| m == tool), "no crates/{tool}");
    }
    let unknown: Vec<&String> = members
        .iter()
        .filter(|m| !layered.contains(&m.as_str()) && !TOOLS.contains(&m.as_str()))
        .collect();
    assert!(
        unknown.is_empty(),
        "give {unknown:?} a place in tidy/layers.rs"
    );
}

#[test]
fn dependencies_point_down() {
    for (name, allowed) in ALLOWED {
        let manifest = manifest(&format!("crates/{name}/Cargo.toml"));
        for dependency in dependencies(&manifest) {
            let Some(other) = dependency.strip_prefix("logpond-") else {
                assert_ne!(dependency, "logpond", "{name} depends on the product");
                continue;
            };
            assert!(
                allowed.contains(&other),
                "crate {name} must not depend on {other}; it may use {allowed:?}"
            );
        }
    }
}

#[test]
fn only_the_product_touches_the_world() {
    for name in ["record", "protocol", "segment", "search", "cluster"] {
        let manifest = manifest(&format!("crates/{name}/Cargo.toml"));
        for dependency in dependencies(&manifest) {
            assert!(
                !is_edge_only(&dependency) || EXCEPTIONS.contains(&(name, &dependency)),
                "crate {name} names {dependency}; only crates above may"
            );
        }
    }
    assert!(is_edge_only("hyper-util") && is_edge_only("clap_complete"));
    assert!(!is_edge_only("logic") && !is_edge_only("memchr"));
}

/// The roles of a crate, bottom first.
fn roles(name: &str) -> Vec<String> {
    let path = root().join(format!("crates/{name}/src/lib.rs"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect()
}

/// The roles that a line of code names: `crate::role::…`.
fn named_roles(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or_default();
    let paths = code.match_indices("crate::").filter(|(at, _)| {
        let before = code[..*at].chars().next_back();
        before.is_none_or(|character| !character.is_alphanumeric() && character != '_')
    });
    paths.map(|(at, path)| {
        let rest = &code[at + path.len()..];
        let end = rest.find(|character: char| !character.is_alphanumeric() && character != '_');
        &rest[..end.unwrap_or(rest.len())]
    })
}

#[test]
fn roles_name_only_roles_below_them() {
    let mut wrong = Vec::new();
    let files = super::sources::repository();
    for name in CRATES_OF_ROLES {
        let roles = roles(name);
        assert!(roles.len() > 1, "crates/{name} has roles");
        let source = format!("crates/{name}/src/");
        for file in files.iter().filter(|file| file.is_rust()) {
            let Some(inside) = file.path.strip_prefix(&source) else {
                continue;
            };
            let role = inside.split(['/', '.']).next();
            let place = roles.iter().position(|known| Some(known.as_str()) == role);
            let Some(place) = place else { continue };
            for (number, line) in file.shipped_lines() {
                let above = |named: &&str| roles[place + 1..].iter().any(|role| role == named);
                for named in named_roles(line).filter(above) {
                    let role = &roles[place];
                    let at = format!("{}:{number}", file.path);
                    wrong.push(format!("{at}: {role} names {named}, which is above it"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_path_from_the_root_names_a_role() {
    let named = |line| named_roles(line).collect::<Vec<_>>();
    assert_eq!(named("use crate::store::{Store};"), ["store"]);
    assert_eq!(named("let a = f(crate::a::b, &crate::c);"), ["a", "c"]);
    assert_eq!(named("// crate::store"), [""; 0]);
    assert_eq!(named("use logpond_crate::store;"), [""; 0]);
}

#[test]
fn every_crate_takes_the_lints_and_versions_of_the_workspace() {
    for member in members() {
        let manifest = manifest(&format!("crates/{member}/Cargo.toml"));
        let lints = manifest.get("lints").and_then(|l| l.get("workspace"));
        let takes_lints = lints.and_then(|l| l.as_bool()) == Some(true);
        // The counters of coverage are memory of the compiler's, which takes `unsafe`.
        assert!(
            takes_lints || member == "fuzz",
            "crates/{member}/Cargo.toml lacks [lints] workspace = true"
        );
        let expected = match member.as_str() {
            "logpond" | "xtask" => member.clone(),
            other => format!("logpond-{other}"),
        };
        assert_eq!(manifest["package"]["name"].as_str(), Some(&*expected));
    }
}

#[test]
fn pinned_tools_are_one_version() {
    let toolchain = manifest("rust-toolchain.toml");
    let channel = toolchain["toolchain"]["channel"]
        .as_str()
        .expect("a channel");
    let workspace = manifest("Cargo.toml");
    let minimum = workspace["workspace"]["package"]["rust-version"].as_str();
    assert_eq!(minimum, channel.rsplit_once('.').map(|(minor, _)| minor));
}
