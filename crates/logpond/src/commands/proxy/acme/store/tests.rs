use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;

fn store(directory: &Path, names: &[&str], server: &str) -> Store {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let ordered = Arc::new(OrderedCertificate::new(&names));
    Store::new(directory, ordered, server, &[server.to_owned()])
}

/// A key and its certificate, as they come.
fn text() -> Vec<u8> {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
    let own = params.self_signed(&key).unwrap();
    format!("{}\n{}", key.serialize_pem(), own.pem()).into_bytes()
}

fn scratch() -> (TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("some/acme");
    (scratch, directory)
}

#[test]
fn what_has_come_is_shown_and_there_again() {
    let (_scratch, directory) = scratch();
    let store_of = || store(&directory, &["a.test"], "https://x/");
    let first = store_of();
    first.check().unwrap();
    assert!(first.read_shown().is_none());
    for _ in 0..2 {
        first.keep_shown(text()).unwrap();
    }
    assert!(first.ordered().not_after().is_some());
    let second = store_of();
    assert!(second.read_shown().is_some() && second.ordered().not_after().is_some());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), DIRECTORY_MODE);
    assert_eq!(mode(first.certificate()), 0o600);
    // Nothing else is left there.
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
}

#[test]
fn what_is_bad_is_as_good_as_nothing() {
    let (_scratch, directory) = scratch();
    let store = store(&directory, &["a.test"], "https://x/");
    store.write(store.certificate(), b"nothing").unwrap();
    assert!(store.read_shown().is_none());
    assert!(store.keep_shown(b"nothing".to_vec()).is_err());
    assert!(store.ordered().not_after().is_none());
}

#[test]
fn files_are_of_one_order() {
    let directory = Path::new("/acme");
    let path = |names: &[&str], server| store(directory, names, server).certificate().to_owned();
    let one = path(&["a.test", "b.test"], "https://x/");
    let name = one.file_name().unwrap().to_str().unwrap();
    assert!(
        name.starts_with("a.test-") && name.ends_with(".pem"),
        "{name}"
    );
    for other in [
        path(&["a.test"], "https://x/"),
        path(&["a.test", "b.test"], "https://y/"),
    ] {
        assert_ne!(one, other);
    }
}

#[test]
fn where_nothing_can_be_kept_is_known_before() {
    let (scratch, _) = scratch();
    let file = scratch.path().join("file");
    fs::write(&file, "").unwrap();
    let error = store(&file, &["a.test"], "https://x/").check().unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("acme-dir: nothing can be kept in ")
    );
}
