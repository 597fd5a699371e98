//! An OCI image of nothing but the program, as an archive of its layout.
//!
//! ```text
//! oci-layout   index.json ─▶ manifest ─▶ config, layer      (all below blobs/sha256)
//! ```
//!
//! Source: the OCI image format specification. `Healthcheck` is Docker's addition to the
//! configuration; others leave it out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{Release, archive, made, write};
use crate::run::{Outcome, output, root};

/// The user of the program: one without a name on any system.
const USER: u32 = 65_532;

/// The data directory in the image.
const DATA: &str = "var/lib/logpond";

/// The directory for temporary files.
const SCRATCH: &str = "tmp";

/// Authorities of the machine that builds, for object stores and receivers of alerts.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Nanoseconds between two health checks, and for one.
const HEALTH_INTERVAL: u64 = 30_000_000_000;
const HEALTH_TIMEOUT: u64 = 5_000_000_000;

/// Most bytes of the compressed layer.
const LAYER_BYTES_MAX: u64 = 20 << 20;

/// Writes the image.
pub(super) fn make(release: &Release) -> Outcome<()> {
    let layout = release.directory.join("image");
    let blobs = layout.join("blobs/sha256");
    made(fs::create_dir_all(&blobs), &blobs)?;
    let layer = release.directory.join("layer.tar");
    write_layer(release, &layer)?;
    let plain = digest(&layer)?;
    let packed = release.directory.join("layer.tar.gz");
    archive::gzip(&layer, &packed)?;
    let (layer_digest, layer_size) = put_file(&blobs, &packed)?;
    if layer_size > LAYER_BYTES_MAX {
        eprintln!(
            "note: the layer has {layer_size} bytes, more than the {LAYER_BYTES_MAX} intended"
        );
    }
    let config = put(&blobs, &config(release, &plain))?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor(
            "application/vnd.oci.image.layer.v1.tar+gzip",
            &(layer_digest, layer_size),
        )],
    });
    let manifest = put(&blobs, &manifest)?;
    let mut named = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    named["platform"] = json!({ "architecture": release.platform.debian, "os": "linux" });
    named["annotations"] = json!({ "org.opencontainers.image.ref.name": release.version });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [named],
    });
    write(&layout.join("index.json"), index.to_string())?;
    write(
        &layout.join("oci-layout"),
        json!({ "imageLayoutVersion": "1.0.0" }).to_string(),
    )?;
    archive::tar(release, &layout, &release.file("-oci.tar"))?;
    for path in [&layer, &packed] {
        made(fs::remove_file(path), path)?;
    }
    Ok(())
}

/// The files of the image: the program, its data directory, authorities, and who its user is.
fn write_layer(release: &Release, to: &Path) -> Outcome<()> {
    let tree = release.directory.join("layer");
    let written = release.directory.join("written");
    for path in [
        tree.join("var/lib"),
        written.join(DATA),
        written.join(SCRATCH),
    ] {
        made(fs::create_dir_all(&path), &path)?;
    }
    let program = release.tree().join("usr/bin/logpond");
    let installed = tree.join("usr/bin/logpond");
    made(fs::create_dir_all(tree.join("usr/bin")), &tree)?;
    made(fs::copy(&program, &installed).map(drop), &installed)?;
    let user = format!("logpond:x:{USER}:{USER}::/{DATA}:/sbin/nologin\n");
    write(
        &tree.join("etc/passwd"),
        format!("root:x:0:0::/:/sbin/nologin\n{user}"),
    )?;
    write(
        &tree.join("etc/group"),
        format!("root:x:0:\nlogpond:x:{USER}:\n"),
    )?;
    let authorities = Path::new("/").join(AUTHORITIES);
    match fs::read(&authorities) {
        Ok(content) => write(&tree.join(AUTHORITIES), content)?,
        Err(_) => eprintln!("note: the image has no authorities, as this machine has none"),
    }
    let licence = root().join("LICENSE");
    write(
        &tree.join("usr/share/doc/logpond/copyright"),
        made(fs::read(&licence), &licence)?,
    )?;
    archive::tar(release, &tree, to)?;
    // The program's user writes only here.
    archive::append(release, &written, &[SCRATCH, DATA], to, USER)
}

fn config(release: &Release, layer: &str) -> Value {
    let time = i64::try_from(release.epoch).unwrap_or(0);
    let time = jiff::Timestamp::from_second(time)
        .unwrap_or_default()
        .to_string();
    json!({
        "created": time,
        "architecture": release.platform.debian,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Entrypoint": ["/usr/bin/logpond"],
            "Cmd": ["serve"],
            "Env": [
                "PATH=/usr/bin",
                format!("LOGPOND_DATA=/{DATA}"),
                "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
            ],
            "Volumes": { format!("/{DATA}"): {} },
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
            "ExposedPorts": { "7650/tcp": {}, "5514/tcp": {}, "5514/udp": {} },
            "Healthcheck": {
                "Test": ["CMD", "/usr/bin/logpond", "health", "--quiet"],
                "Interval": HEALTH_INTERVAL,
                "Timeout": HEALTH_TIMEOUT,
                "Retries": 3,
            },
            "Labels": {
                "org.opencontainers.image.title": "logpond",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer}")] },
        "history": [{ "created": time, "created_by": "cargo xtask dist" }],
    })
}

fn descriptor(kind: &str, (digest, size): &(String, u64)) -> Value {
    json!({ "mediaType": kind, "digest": format!("sha256:{digest}"), "size": size })
}

/// Puts an object among the blobs; gives its digest and its size.
fn put(blobs: &Path, object: &Value) -> Outcome<(String, u64)> {
    let path = blobs.join("new");
    write(&path, object.to_string())?;
    put_file(blobs, &path).and_then(|put| {
        made(fs::remove_file(&path), &path)?;
        Ok(put)
    })
}

fn put_file(blobs: &Path, from: &Path) -> Outcome<(String, u64)> {
    let digest = digest(from)?;
    let to: PathBuf = blobs.join(&digest);
    let size = made(fs::copy(from, &to), &to)?;
    Ok((digest, size))
}

/// The SHA-256 of a file, in hexadecimal digits.
fn digest(path: &Path) -> Outcome<String> {
    let text = output(Command::new("sha256sum").arg("--").arg(path))?;
    let digest = text.split_whitespace().next().unwrap_or_default();
    // Names with odd characters are escaped, and the line says so.
    Ok(digest.trim_start_matches('\\').to_owned())
}
