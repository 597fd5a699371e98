//! The page in a browser: what a person sees there.

use std::process::Command;

use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::{has_program, program, skip};

/// The browser's name on Debian.
const BROWSER: &str = "chromium";

/// How long the page's own clock may run, in milliseconds; it stands while an answer is waited for.
const PAGE_TIME_MS: u32 = 10_000;

/// A server with records, unless there is no browser.
fn filled(scratch: &Scratch, what: &str) -> Option<TestServer> {
    if !has_program(BROWSER) {
        skip(what, "there is no chromium (./test installs it)");
        return None;
    }
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    if !has_interface(&server) {
        skip(what, "the interface is not embedded (web/build builds it)");
        return None;
    }
    let lines = [
        r#"{"time":"2015-05-20T10:00:00Z","message":"the old one","app":"shop"}"#,
        r#"{"time":"2015-05-20T11:00:00Z","message":"the middle one","app":"shop"}"#,
        r#"{"time":"2015-05-20T12:00:00Z","id":9007199254740993,"list":[9007199254740995]}"#,
    ];
    let body = lines.join("\n");
    let pushed = server
        .push("application/x-ndjson", body.as_bytes())
        .unwrap();
    assert_eq!(pushed.accepted(), 3);
    Some(server)
}

/// True if the application is embedded, and not the small page of a build without Node.
fn has_interface(server: &TestServer) -> bool {
    server.get("/web/app.js").is_err()
}

/// The text of a page without its tags.
fn text_of(html: &str) -> String {
    let outside = html
        .split('<')
        .map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    let words: Vec<&str> = outside.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

/// The page at this address and its text, once they have all of `expected`.
fn shown(server: &TestServer, scratch: &Scratch, target: &str, expected: &[&str]) -> String {
    let profile = scratch.path().join("browser");
    let mut page = String::new();
    let is_shown = || {
        let output = Command::new(BROWSER)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--dump-dom",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("--virtual-time-budget={PAGE_TIME_MS}"))
            .arg(format!("{}{target}", server.url()))
            .output()
            .unwrap();
        let html = String::from_utf8_lossy(&output.stdout).into_owned();
        page = format!("{html}\n{}", text_of(&html));
        expected.iter().all(|text| page.contains(text))
    };
    wait_until(&format!("{target} shows {expected:?}"), is_shown).unwrap();
    page
}

#[test]
fn the_page_keeps_to_its_address_and_to_all_digits() {
    let scratch = Scratch::new("page").unwrap();
    let Some(server) = filled(&scratch, "the page in a browser") else {
        return;
    };
    let target = "/?q=one&from=2015-05-20T10:30:00Z&to=2015-05-20T11:30:00Z";
    let page = shown(&server, &scratch, target, &["the middle one", "1 record"]);
    assert!(!page.contains("the old one"));
    assert!(
        page.contains("2015-05-20 10:30 – 2015-05-20 11:30"),
        "{page}"
    );
    let target = "/?q=id:*&from=@0";
    let digits = &["9007199254740993", "[9007199254740995]"];
    shown(&server, &scratch, target, digits);
}

#[test]
fn the_page_shows_what_was_probably_meant() {
    let scratch = Scratch::new("page-hints").unwrap();
    let Some(server) = filled(&scratch, "hints of the page in a browser") else {
        return;
    };
    let target = "/?q=ap%3Dshop&from=2015-05-20&to=2015-05-21";
    let link = "<a href=\"?q=app%3Dshop&amp;from=2015-05-20&amp;to=2015-05-21\">app=shop</a>";
    shown(&server, &scratch, target, &["the nearest is 'app'", link]);
    shown(
        &server,
        &scratch,
        "/?q=app%3Dshop",
        &["2 records match before the range", ">search there</a>"],
    );
}

#[test]
fn links_of_alerts_show_what_they_ask() {
    let scratch = Scratch::new("page-logql").unwrap();
    let Some(server) = filled(&scratch, "LogQL in the page") else {
        return;
    };
    let numbers = "/?logql=sum(count_over_time(%7Bapp%3D%22shop%22%7D%5B1d%5D))%20%3E%201\
                   &from=2015-05-20T12:00:00Z&to=2015-05-20T13:00:00Z";
    shown(&server, &scratch, numbers, &["1 series", "highest"]);
    let lines = "/?logql=%7Bapp%3D%22shop%22%7D&from=@0";
    shown(&server, &scratch, lines, &["2 records", "the old one"]);
    shown(
        &server,
        &scratch,
        "/?logql=%7Bapp",
        &["parse error at line 1"],
    );
}
