//! What authorities say of certificates is shown with them.

use std::fs;
use std::process::{Command, Stdio};

use crate::peers::has;
use crate::setting::*;

/// What `openssl s_client` was shown.
fn status(proxy: &Proxy, version: &str) -> String {
    let output = Command::new("openssl")
        .args([
            "s_client",
            "-servername",
            "localhost",
            "-status",
            version,
            "-connect",
        ])
        .arg(proxy.address().to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn clients_that_ask_are_shown_what_the_authority_says() {
    if !has("openssl", "version") {
        return;
    }
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let certificates = load(std::slice::from_ref(&files));
    assert!(certificates.warnings().is_empty());
    let proxy = Proxy::start(settings(&[upstream(echo)]), &certificates);
    for version in ["-tls1_2", "-tls1_3"] {
        assert!(status(&proxy, version).contains("OCSP response: no response sent"));
    }
    // The certificate is its own authority.
    let openssl = |arguments: &[&str]| {
        let output = Command::new("openssl").args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let [own, key] = [&files.certificate, &files.key].map(|path| path.to_str().unwrap());
    let serial = openssl(&["x509", "-in", own, "-noout", "-serial"]);
    let serial = serial.trim().strip_prefix("serial=").unwrap();
    let index = scratch.path("index.txt");
    fs::write(
        &index,
        format!("V\t491231000000Z\t\t{serial}\tunknown\t/CN=x\n"),
    )
    .unwrap();
    let staple = format!("{own}.ocsp");
    let index = index.to_str().unwrap();
    openssl(&[
        "ocsp",
        "-index",
        index,
        "-CA",
        own,
        "-rsigner",
        own,
        "-rkey",
        key,
        "-issuer",
        own,
        "-cert",
        own,
        "-noverify",
        "-ndays",
        "7",
        "-respout",
        &staple,
    ]);
    let again = certificates.load_again(&tls(std::slice::from_ref(&files)));
    proxy.show(&again.unwrap());
    for version in ["-tls1_2", "-tls1_3"] {
        let shown = status(&proxy, version);
        assert!(
            shown.contains("OCSP Response Status: successful"),
            "{shown}"
        );
        assert!(shown.contains("Cert Status: good"), "{shown}");
    }
    let status_now = proxy.running().control().status();
    let until = status_now.frontends[0].certificates[0].staple_until;
    assert!(until.flatten().is_some());
    // What is no response keeps no certificate from being shown.
    fs::write(&staple, "nothing").unwrap();
    let again = certificates.load_again(&tls(std::slice::from_ref(&files)));
    let again = again.unwrap();
    assert!(again.warnings()[0].contains("is none, or broken"));
    proxy.show(&again);
    assert!(status(&proxy, "-tls1_3").contains("OCSP response: no response sent"));
}
