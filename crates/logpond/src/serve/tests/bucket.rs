//! A server with a bucket beside its disk.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::Server;
use super::client::{PATIENCE, compact, get, metric, push};
use super::settings;
use logpond_settings::{AtStart, Settings};
use logpond_settings::{BucketSettings, Local};

/// Settings for a server with a bucket in a directory.
fn with_bucket(data: &Path, bucket: &Path) -> Settings {
    Settings {
        bucket: Some(BucketSettings {
            location: format!("file:{}", bucket.display()).parse().unwrap(),
            cache: data.join("bucket-cache"),
            cache_bytes: 64 << 20,
            local: Local::default(),
            table: Some(Duration::ZERO),
        }),
        ..settings(data)
    }
}

fn stop(server: Server) {
    server.stop();
    server.join().unwrap();
}

/// Takes in records with these numbers and makes one segment of all there is.
fn add(server: &Server, numbers: std::ops::Range<u64>) {
    let http = server.addresses().http;
    let lines = numbers.map(|n| {
        format!(
            r#"{{"time":"2026-03-02T00:00:00Z","n":{n},"of":"{}"}}"#,
            n % 7
        )
    });
    let body: String = lines.map(|line| line + "\n").collect();
    assert_eq!(
        push(http, "application/x-ndjson", body.as_bytes()).status,
        200
    );
    compact(http);
}

/// Makes one segment of all there is.
/// How many records there are of a question, and whether these are all.
fn count(http: SocketAddr, question: &str) -> (u64, bool) {
    let (_, trailer) = get(
        http,
        &format!("/api/v1/query?from=@0&count=true&q={question}"),
    )
    .rows();
    (
        trailer["rows"].as_u64().unwrap(),
        trailer["complete"].as_bool().unwrap(),
    )
}

/// Requests to the bucket that a question about one row took.
fn costs(http: SocketAddr, question: &str) -> u64 {
    let (_, trailer) = get(http, &format!("/api/v1/query?from=@0&q={question}")).rows();
    assert_eq!(trailer["rows"], 1);
    trailer["bucket_requests"].as_u64().unwrap_or(0)
}

/// Where each segment is read from.
fn places(http: SocketAddr) -> Vec<String> {
    let (rows, _) = get(http, "/api/v1/segments").rows();
    let places = rows.iter().filter_map(|row| row["place"].as_str());
    places.map(str::to_owned).collect()
}

/// Asks until it is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "{what}");
    }
}

fn until_uploaded(server: &Server) {
    let http = server.addresses().http;
    until("everything is uploaded", || {
        metric(http, "logpond_bucket_segments") > 0 && metric(http, "logpond_bucket_waiting") == 0
    });
}

#[test]
fn what_a_server_had_another_one_has() {
    let (data, bucket) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::start(&with_bucket(data.path(), bucket.path())).unwrap();
    add(&server, 0..500);
    until_uploaded(&server);
    assert_eq!(places(server.addresses().http), ["disk"]);
    stop(server);

    // The disk is gone, and the data is not.
    let other = tempfile::tempdir().unwrap();
    let server = Server::start(&with_bucket(other.path(), bucket.path())).unwrap();
    let http = server.addresses().http;
    assert_eq!(places(http), ["bucket"]);
    assert_eq!(count(http, ""), (500, true));
    assert_eq!(count(http, "of=3"), (71, true));
    // New records come beside them.
    add(&server, 500..600);
    assert_eq!(count(http, ""), (600, true));
    until("both are in the bucket", || {
        metric(http, "logpond_bucket_segments") == 2
    });
    assert_eq!(count(http, "of=3"), (86, true));
    stop(server);
    let server = Server::start(&with_bucket(other.path(), bucket.path())).unwrap();
    assert_eq!(count(server.addresses().http, ""), (600, true));
    stop(server);
}

#[test]
fn merges_take_the_place_of_what_they_are_made_of() {
    let (data, bucket) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::start(&with_bucket(data.path(), bucket.path())).unwrap();
    let http = server.addresses().http;
    for n in 0..3 {
        add(&server, n * 100..n * 100 + 100);
        until("the merge is the only one that counts", || {
            metric(http, "logpond_bucket_uploads_total") > n as i64
                && metric(http, "logpond_bucket_segments") == 1
                && metric(http, "logpond_bucket_waiting") == 0
        });
        assert_eq!(count(http, ""), ((n + 1) * 100, true));
    }
    stop(server);
}

#[test]
fn the_local_disk_need_not_keep_what_the_bucket_has() {
    let (data, bucket) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut settings = with_bucket(data.path(), bucket.path());
    settings.bucket.as_mut().unwrap().local.age_ns = Some(0);
    let server = Server::start(&settings).unwrap();
    let http = server.addresses().http;
    add(&server, 0..500);
    stop_after_eviction(server, http, &data.path().join("segments"));
    let server = Server::start(&settings).unwrap();
    assert_eq!(count(server.addresses().http, "of=3"), (71, true));
    stop(server);
}

#[test]
fn answers_say_what_they_took_from_the_bucket() {
    let (data, bucket) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::start(&with_bucket(data.path(), bucket.path())).unwrap();
    // More than comes with the directory of a small segment.
    let text = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let lines = (0..40_000).map(|n| format!("{n} {:x} {:x}\n", text(n), text(text(n))));
    let body: String = lines.collect();
    let http = server.addresses().http;
    assert_eq!(push(http, "text/plain", body.as_bytes()).status, 200);
    compact(http);
    until_uploaded(&server);
    let question = format!("{:x}", text(33_333));
    assert_eq!(costs(http, &question), 0);
    stop(server);
    // What is read is paid for once, and kept over a restart.
    let other = tempfile::tempdir().unwrap();
    let settings = with_bucket(other.path(), bucket.path());
    let server = Server::start(&settings).unwrap();
    let first = costs(server.addresses().http, &question);
    assert!((1..=4).contains(&first), "{first} requests");
    assert_eq!(costs(server.addresses().http, &question), 0);
    stop(server);
    let server = Server::start(&settings).unwrap();
    assert_eq!(costs(server.addresses().http, &question), 0);
    stop(server);
}

/// The segments that count in this directory.
fn live_files(segments: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(segments).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "parquet"))
        .collect()
}

fn stop_after_eviction(server: Server, http: SocketAddr, segments: &Path) {
    until("the local copy is given up", || places(http) == ["bucket"]);
    assert_eq!(count(http, ""), (500, true));
    assert!(live_files(segments).is_empty());
    stop(server);
}

#[test]
fn what_is_too_old_leaves_the_bucket() {
    let (data, bucket) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::start(&with_bucket(data.path(), bucket.path())).unwrap();
    add(&server, 0..500);
    until_uploaded(&server);
    stop(server);
    let settings = Settings {
        retain_age: Some(Duration::ZERO),
        at_start: AtStart {
            confirms_retention: true,
            ..AtStart::default()
        },
        ..with_bucket(data.path(), bucket.path())
    };
    let server = Server::start(&settings).unwrap();
    let http = server.addresses().http;
    until("nothing is listed", || {
        metric(http, "logpond_bucket_segments") == 0
    });
    assert_eq!(count(http, ""), (0, true));
    stop(server);
    // It does not come back, whoever starts.
    let server = Server::start(&with_bucket(data.path(), bucket.path())).unwrap();
    assert_eq!(count(server.addresses().http, ""), (0, true));
    stop(server);
}

/// Has a server upload a segment, then damages the pages of the copy in the data directory, so that it can
/// still be opened.
fn upload_and_damage(settings: &Settings, data: &Path) {
    let server = Server::start(settings).unwrap();
    add(&server, 0..500);
    until_uploaded(&server);
    stop(server);
    let file = live_files(&data.join("segments")).pop().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    // The pages begin behind the first four bytes.
    bytes[4..64].fill(0);
    fs::write(&file, bytes).unwrap();
}

#[test]
fn a_damaged_copy_here_gives_way_to_the_bucket() {
    let (data, bucket) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let settings = with_bucket(data.path(), bucket.path());
    upload_and_damage(&settings, data.path());
    let server = Server::start(&settings).unwrap();
    let http = server.addresses().http;
    // A question finds the damage, and those after it do without the file.
    until("it is read from the bucket", || {
        get(http, "/api/v1/query?from=@0&q=of=3");
        places(http) == ["bucket"]
    });
    assert_eq!(count(http, "of=3"), (71, true));
    let (rows, _) = get(http, "/api/v1/query?from=@0&q=of=3").rows();
    assert_eq!(rows.len(), 71);
    assert!(live_files(&data.path().join("segments")).is_empty());
    stop(server);
}

#[test]
fn a_scrub_has_a_damaged_copy_give_way_before_anybody_asks() {
    let (data, bucket) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let settings = with_bucket(data.path(), bucket.path());
    upload_and_damage(&settings, data.path());
    let settings = Settings {
        scrub_every: Some(Duration::from_secs(1)),
        ..settings
    };
    let server = Server::start(&settings).unwrap();
    let http = server.addresses().http;
    until("it is read from the bucket", || places(http) == ["bucket"]);
    assert_eq!(metric(http, "logpond_scrub_damaged_total"), 1);
    let (rows, _) = get(http, "/api/v1/query?from=@0&q=of=3").rows();
    assert_eq!(rows.len(), 71);
    assert_eq!(count(http, "of=3"), (71, true));
    stop(server);
}

#[test]
fn answers_without_the_bucket_say_so() {
    let (data, bucket) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::start(&with_bucket(data.path(), bucket.path())).unwrap();
    add(&server, 0..500);
    until_uploaded(&server);
    stop(server);
    // A segment has vanished from the bucket.
    let segments = bucket.path().join("segments");
    fs::rename(&segments, bucket.path().join("away")).unwrap();
    let other = tempfile::tempdir().unwrap();
    let server = Server::start(&with_bucket(other.path(), bucket.path())).unwrap();
    let http = server.addresses().http;
    assert_eq!(count(http, ""), (0, false));
    fs::rename(bucket.path().join("away"), &segments).unwrap();
    until("it is found again", || count(http, "") == (500, true));
    stop(server);
}
