use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use expect_test::expect;
use logpond_record::Timestamp;

use super::entry::is_name;
use super::*;

/// 2026-11-22T03:00:00Z.
const NOW: Timestamp = Timestamp(1_795_316_400_000_000_000);

const HOUR_NS: i64 = 3_600_000_000_000;

fn fixed(id: &str, secret: char) -> Token {
    let secret: String = std::iter::repeat_n(secret, 32).collect();
    Token::parse(&format!("lp_{id}_{secret}")).unwrap()
}

fn entry(token: &Token, name: Option<&str>, role: Role, expires: Option<Timestamp>) -> Entry {
    Entry::new(token, name.map(str::to_owned), role, NOW, expires)
}

fn two() -> Tokens {
    let mut tokens = Tokens::default();
    let (a, b) = (fixed("aaaaaaaa", '0'), fixed("bbbbbbbb", '1'));
    tokens
        .add(entry(&a, Some("shipper"), Role::Write, None))
        .unwrap();
    let end = NOW.saturating_add(HOUR_NS);
    tokens.add(entry(&b, None, Role::Read, Some(end))).unwrap();
    tokens
}

#[test]
fn the_file_is_for_people_too() {
    let text = two().render();
    expect![[r##"
        # Tokens of Logpond, made by `logpond token create`. Only hashes are kept: a token that is lost
        # cannot be shown again, revoke it and create another. Servers notice changes by themselves.

        [[token]]
        id = "aaaaaaaa"
        name = "shipper"
        role = "write"
        sha256 = "7d51f1ca882bfa8cbfa1140b3720998b3b0aaab24803b67e28677312de9e6246"
        scram-sha-256 = "d8c3d0f5bdae4e8a0d12d7733f4b14076d5c07e799a37561b87c517eaece0adbb49a0a4cb7cb55baad97cd12900bfe0572ee8a7acffe7558b4fd91f345a14b14"
        created = "2026-11-22T03:00:00Z"

        [[token]]
        id = "bbbbbbbb"
        role = "read"
        sha256 = "201b445d0c824432591f1d662897bb1eac3decd2aabce20494a20955c1da93b5"
        scram-sha-256 = "3e2740f2ee162b426670b486a98c9324fc423dd07aa9e8d56c4f9d4de9ef7813ba74be26d9c2bb69af81f6a444be038d2e2aa76ee5eafab2d8ff70c49521268d"
        created = "2026-11-22T03:00:00Z"
        expires = "2026-11-22T04:00:00Z"
    "##]]
    .assert_eq(&text);
    assert_eq!(Tokens::parse(&text).unwrap(), two());
    assert_eq!(Tokens::parse("").unwrap(), Tokens::default());
}

#[test]
fn bounds_are_kept_beside_the_entry() {
    let bound = |id: &str, role, only: Option<&str>, labels: &[&str]| {
        let labels = labels.iter().map(|text| read_label(text).unwrap());
        let bounds = Bounds::new(only.map(str::to_owned), labels.collect()).unwrap();
        let entry = entry(&fixed(id, '0'), None, role, None);
        entry.bound_by(bounds).unwrap()
    };
    let mut tokens = Tokens::default();
    let entries = [
        bound("aaaaaaaa", Role::Read, Some(r#"team=x NOT "a \\ b""#), &[]),
        bound("bbbbbbbb", Role::Write, None, &["team=x", "region=a \"b\""]),
    ];
    let mut add = |entry| tokens.add(entry).unwrap();
    entries.into_iter().for_each(&mut add);
    let text = tokens.render();
    let lines = [
        r#"only = "team=x NOT \"a \\\\ b\"""#,
        r#"label = ["team=x", "region=a \"b\""]"#,
    ];
    for line in lines {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(Tokens::parse(&text).unwrap(), tokens);
    // A program that does not know the key refuses the file, as this one does with any other.
    let changes = [
        ("only =", "only-x ="),
        ("only = \"", "only = \"("),
        ("\"read\"", "\"write\""),
    ];
    for (from, to) in changes {
        let bad = text.replace(from, to);
        assert!(Tokens::parse(&bad).is_err(), "{bad}");
    }
}

#[test]
fn a_bad_file_is_named_with_the_line() {
    let good = two().render();
    let table = [
        ("token = 1", 1, "expected [[token]]"),
        ("\n[[tokens]]", 2, "expected [[token]]"),
        ("[[token]", 1, ""),
        ("[[token]]\nid = 'x'", 1, "'id'"),
        ("[[token]]\nid = 7", 1, "'id' is not a text"),
        (&good.replace("write", "root"), 4, "'role'"),
        (
            &good.replace("created = \"2026", "created = \"x"),
            4,
            "'created'",
        ),
        (
            &good.replace("expires = \"2026", "expires = \"x"),
            12,
            "'expires'",
        ),
        (
            &good.replace("\nsha256 = \"", "\nsha256 = \"0"),
            4,
            "'sha256'",
        ),
        (
            &good.replace("scram-sha-256 = \"", "scram-sha-256 = \"0"),
            4,
            "'scram-sha-256' is not 128",
        ),
        (&good.replace("expires", "until"), 12, "unknown key 'until'"),
        (&good.replace("shipper", "a b"), 4, "'a b' is no name"),
        (&good.replace("bbbbbbbb", "aaaaaaaa"), 12, "already"),
    ];
    for (text, line, what) in table {
        match Tokens::parse(text) {
            Err(TokenFileError::Syntax {
                line: at,
                what: said,
            }) => {
                assert!(at == line && said.contains(what), "{text}: {at}: {said}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn tokens_are_random_words() {
    let (a, b) = (Token::mint().unwrap(), Token::mint().unwrap());
    assert_ne!((a.id(), a.expose()), (b.id(), b.expose()));
    assert_eq!(a.expose().len(), 3 + 8 + 1 + 32);
    let again = Token::parse(a.expose()).unwrap();
    assert_eq!((again.id(), again.hash()), (a.id(), a.hash()));
    assert!(!format!("{a:?}").contains(&a.expose()[12..]), "{a:?}");
    let whole = a.expose().to_owned();
    for bad in [
        "",
        "lp_",
        &whole[1..],
        &whole[..43],
        &format!("{whole}0"),
        &whole.to_uppercase(),
        &whole.replacen('_', "-", 2),
    ] {
        assert!(Token::parse(bad).is_none(), "{bad}");
    }
}

#[test]
fn names_are_short_words() {
    for good in ["a", "web-1.example_x", &"x".repeat(64)] {
        assert!(is_name(good), "{good}");
    }
    for bad in ["", "a b", "a\"", "ä", "a\n", &"x".repeat(65)] {
        assert!(!is_name(bad), "{bad}");
    }
}

#[test]
fn a_name_is_one_tokens() {
    let mut tokens = two();
    let other = fixed("cccccccc", '2');
    for taken in ["shipper", "aaaaaaaa"] {
        let error = tokens.add(entry(&other, Some(taken), Role::Read, None));
        assert!(
            matches!(error, Err(TokenFileError::NameTaken(_))),
            "{taken}"
        );
    }
    assert_eq!(tokens.remove("shipper").unwrap().id, "aaaaaaaa");
    assert!(matches!(
        tokens.remove("shipper"),
        Err(TokenFileError::Unknown(_))
    ));
    assert_eq!(tokens.remove("bbbbbbbb").unwrap().role, Role::Read);
    assert_eq!(tokens, Tokens::default());
}

#[test]
fn the_number_of_tokens_is_bounded() {
    let mut tokens = Tokens::default();
    let mint = || entry(&Token::mint().unwrap(), None, Role::Read, None);
    for _ in 0..TOKENS_MAX {
        tokens.add(mint()).unwrap();
    }
    assert!(matches!(tokens.add(mint()), Err(TokenFileError::TooMany)));
    // What may be written can be read.
    assert_eq!(Tokens::parse(&tokens.render()).unwrap(), tokens);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokens.toml");
    update(&path, |file| {
        *file = tokens.clone();
        Ok(())
    })
    .unwrap();
    assert_eq!(read(&path).unwrap(), tokens);
}

#[test]
fn roles_and_their_rights() {
    let rights = |role: Role| ROLES.map(|needed| role.allows(needed));
    assert_eq!(rights(Role::Read), [true, false, false]);
    assert_eq!(rights(Role::Write), [false, true, false]);
    assert_eq!(rights(Role::Admin), [true, true, true]);
    for role in ROLES {
        assert_eq!(Role::parse(role.as_str()), Some(role));
    }
}

#[test]
fn a_guard_says_why_it_refuses() {
    let guard = Guard::new(two());
    let text = |token: &Token| token.expose().to_owned();
    let (writer, reader) = (text(&fixed("aaaaaaaa", '0')), text(&fixed("bbbbbbbb", '1')));
    let after = NOW.saturating_add(HOUR_NS);
    let check = |given: Option<&str>, needed, now| guard.check(given, needed, now).map(drop);
    assert_eq!(check(Some(&writer), Role::Write, after), Ok(()));
    assert_eq!(check(Some(&reader), Role::Read, NOW), Ok(()));
    assert_eq!(check(None, Role::Read, NOW), Err(Refusal::Missing));
    // The secret of one with the id of the other is neither.
    let mixed = text(&fixed("aaaaaaaa", '1'));
    for unknown in ["", "x", &mixed, &text(&fixed("cccccccc", '1'))] {
        let refused = check(Some(unknown), Role::Read, NOW);
        assert_eq!(refused, Err(Refusal::Unknown), "{unknown}");
    }
    let said = |refused: Result<(), Refusal>| refused.unwrap_err().to_string();
    assert_eq!(
        said(check(Some(&reader), Role::Read, after)),
        "the token 'bbbbbbbb' expired at 2026-11-22T04:00:00Z"
    );
    assert_eq!(
        said(check(Some(&writer), Role::Admin, NOW)),
        "this needs a token of role admin; 'shipper' has role write"
    );
    guard.replace(Tokens::default());
    assert_eq!(
        check(Some(&writer), Role::Write, NOW),
        Err(Refusal::Unknown)
    );
    assert_eq!(
        Guard::optional(Tokens::default())
            .check(None, Role::Admin, NOW)
            .map(drop),
        Ok(())
    );
}

fn add(path: &Path) -> String {
    let token = Token::mint().unwrap();
    update(path, |tokens| {
        tokens.add(entry(&token, None, Role::Read, None))
    })
    .unwrap();
    token.id().to_owned()
}

#[test]
fn changes_by_several_are_all_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokens.toml");
    let mut added: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| add(&path))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let tokens = read(&path).unwrap();
    let mut ids: Vec<_> = tokens.entries().iter().map(|e| e.id.clone()).collect();
    added.sort();
    ids.sort();
    assert_eq!(ids, added);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let names: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing else is left: {names:?}");
}

#[test]
fn a_link_to_the_file_stays_one() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().join("real.toml");
    let link = directory.path().join("tokens.toml");
    add(&real);
    symlink(&real, &link).unwrap();
    add(&link);
    assert_eq!(read(&real).unwrap().entries().len(), 2);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn a_change_that_fails_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokens.toml");
    add(&path);
    let before = std::fs::metadata(&path).unwrap().ino();
    let refused = update(&path, |tokens| tokens.remove("nobody").map(drop));
    assert!(matches!(refused, Err(TokenFileError::Unknown(_))));
    assert_eq!(std::fs::metadata(&path).unwrap().ino(), before);
    std::fs::write(&path, "[[token]").unwrap();
    assert!(matches!(
        update(&path, |_| Ok(())),
        Err(TokenFileError::In { .. })
    ));
    assert_eq!(std::fs::read(&path).unwrap(), b"[[token]");
    let long = vec![b'#'; 3 << 20];
    std::fs::write(&path, long).unwrap();
    assert!(matches!(read(&path), Err(TokenFileError::Io { .. })));
}
