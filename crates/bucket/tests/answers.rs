//! What is made of the answers of stores that say what is wrong with settings or credentials.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use bytes::Bytes;
use logpond_bucket::{BucketError, FailureKind, Objects, Store};

/// A server that answers every request so; its threads end with the test's process.
fn serve(answer: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let answer = answer.clone();
            thread::spawn(move || while answer_one(client.as_ref().unwrap(), &answer) {});
        }
    });
    address
}

/// Whether there was a request.
fn answer_one(client: &TcpStream, answer: &str) -> bool {
    let (mut reader, mut bytes) = (BufReader::new(client), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return false;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(length) = line.strip_prefix("content-length:") {
            bytes = length.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; bytes]).unwrap();
    (&mut &*client).write_all(answer.as_bytes()).is_ok()
}

/// An answer as S3 and Google write theirs.
fn answer(status: &str, header: &str, code: &str, more: &str) -> String {
    let body = format!(
        "<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code>\n<Message>no</Message>{more}</Error>"
    );
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{header}content-length: {length}\r\n\r\n{body}")
}

fn open(place: &str, variables: &[(&str, String)]) -> Store {
    let owned = |(name, value): &(&str, String)| ((*name).to_owned(), value.clone());
    let variables: Vec<_> = variables.iter().map(owned).collect();
    Store::open(&place.parse().unwrap(), &variables).unwrap()
}

fn s3(address: SocketAddr) -> Store {
    let variables = [
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
        ("AWS_REGION", "eu-central-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
    ];
    open("s3://logs/pond", &variables)
}

fn with_causes(error: &BucketError) -> String {
    let (mut text, mut next) = (error.to_string(), error.source());
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// What a write, a reading and a listing end with.
fn failures(store: &Store) -> [BucketError; 3] {
    [
        store.create("a", Bytes::from_static(b"x")).unwrap_err(),
        store.get("a", 10).unwrap_err(),
        store.list("a/", None).unwrap_err(),
    ]
}

#[test]
fn wrong_settings_are_told_apart() {
    let (elsewhere, region) = ("x-amz-bucket-region: eu-west-1\r\n", "AWS_REGION");
    for (status, header, code, more, kind, says) in [
        (
            "404 No",
            "",
            "NoSuchBucket",
            "",
            FailureKind::NoBucket,
            "make it",
        ),
        (
            "403 No",
            elsewhere,
            "SignatureDoesNotMatch",
            "",
            FailureKind::Refused,
            "credentials",
        ),
        (
            "400 No",
            "",
            "ExpiredToken",
            "",
            FailureKind::Refused,
            "ExpiredToken",
        ),
        (
            "301 No",
            elsewhere,
            "PermanentRedirect",
            "",
            FailureKind::Refused,
            region,
        ),
        (
            "400 No",
            "",
            "AuthorizationHeaderMalformed",
            "<Region>eu-west-1</Region>",
            FailureKind::Refused,
            region,
        ),
    ] {
        let store = s3(serve(answer(status, header, code, more)));
        for error in failures(&store) {
            let text = with_causes(&error);
            assert_eq!(error.kind, kind, "{text}");
            assert!(text.contains(says) && text.contains(code), "{text}");
            assert_eq!(
                text.contains("is in the region eu-west-1"),
                says == region,
                "{text}"
            );
            assert!(!text.contains('\n'), "{text}");
        }
    }
    // Others may pass.
    let store = s3(serve(answer("400 No", "", "RequestTimeout", "")));
    for error in failures(&store) {
        assert_eq!(error.kind, FailureKind::Unavailable, "{error:?}");
    }
}

#[test]
fn containers_of_azure_are_missed() {
    let header = "x-ms-error-code: ContainerNotFound\r\n";
    let address = serve(answer("404 No", header, "", ""));
    let variables = [
        ("AZURE_STORAGE_ENDPOINT", format!("http://{address}/logs")),
        ("AZURE_STORAGE_ACCOUNT", "logs".to_owned()),
        ("AZURE_STORAGE_KEY", "c2VjcmV0".to_owned()),
    ];
    for error in failures(&open("az://logs/pond", &variables)) {
        assert_eq!(error.kind, FailureKind::NoBucket, "{error:?}");
    }
}

#[test]
fn it_is_said_that_no_credentials_were_given() {
    let address = serve(answer("404 No", "", "", ""));
    let variables = [("AWS_METADATA_ENDPOINT", format!("http://{address}"))];
    for error in failures(&open("s3://logs/pond", &variables)) {
        let text = with_causes(&error);
        assert_eq!(error.kind, FailureKind::Unavailable, "{text}");
        assert!(text.contains("no AWS_ACCESS_KEY_ID"), "{text}");
    }
}

#[test]
fn listings_begin_where_they_are_to() {
    let object = |name: &str| {
        format!(
            "<Contents><Key>pond/{name}</Key><Size>1</Size><ETag>x</ETag>\
             <LastModified>2026-11-22T00:00:00.000Z</LastModified></Contents>"
        )
    };
    let names = ["a/1", "a/2", "a/3"];
    let body = format!("<R>{}</R>", names.map(object).concat());
    let length = body.len();
    let whatever = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
    let store = s3(serve(whatever));
    for (behind, count) in [
        (None, 3),
        (Some("a/1"), 2),
        (Some("a/3"), 0),
        (Some("a/0"), 3),
    ] {
        let found = store.list("a/", behind).unwrap();
        let found: Vec<&str> = found.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(found, names[names.len() - count..], "{behind:?}");
    }
}
