//! Attempts whose answers come in any way, and the bytes of questions and answers.

use std::path::PathBuf;

use logpond_segment::file::Retry;
use proptest::prelude::*;

use super::*;

fn source(sequence: u64) -> SourceId {
    SourceId {
        incarnation: Incarnation(1),
        sequence,
    }
}

fn set(numbers: &[u64]) -> SourceSet {
    numbers.iter().map(|n| source(*n)).collect()
}

fn peers(zones: &[Option<u64>]) -> Vec<Peer> {
    let each = (1..).zip(zones);
    each.map(|(node, zone)| Peer {
        node: NodeId(node),
        zone: *zone,
    })
    .collect()
}

fn yes(attempt: u128, node: u128, numbers: &[u64]) -> HoldingsReply {
    HoldingsReply {
        attempt: Attempt(attempt),
        node: NodeId(node),
        sources: set(numbers),
        listed: None,
        contents: Vec::new(),
    }
}

#[test]
fn enough_distinct_nodes_must_say_yes_to_this_attempt() {
    let copies = Copies::on_nodes(2);
    let mut attempt = GiveUp::new(Attempt(7), set(&[1, 2, 3]), &peers(&[None; 3]), copies);
    assert_eq!(attempt.to_ask(), [NodeId(1), NodeId(2), NodeId(3)]);
    assert!(attempt.answered(&yes(7, 1, &[1, 2, 9])));
    for foreign in [
        yes(6, 2, &[1, 2, 3]),
        yes(7, 1, &[1, 2, 3]),
        yes(7, 4, &[1, 2, 3]),
    ] {
        assert!(!attempt.answered(&foreign), "{foreign:?}");
    }
    assert!(attempt.confirmed().is_empty());
    assert!(attempt.answered(&yes(7, 2, &[2, 3])));
    assert_eq!(attempt.confirmed(), set(&[2]));
    assert!(!attempt.is_settled());
    attempt.failed(NodeId(3));
    assert!(attempt.is_settled());
    assert!(!attempt.answered(&yes(7, 3, &[1, 2, 3])), "too late");
    assert_eq!(attempt.confirmed(), set(&[2]));
}

#[test]
fn no_more_are_asked_once_all_is_confirmed() {
    let copies = Copies::on_nodes(1);
    let mut attempt = GiveUp::new(Attempt(7), set(&[1]), &peers(&[None; 3]), copies);
    attempt.answered(&yes(7, 3, &[1]));
    assert!(attempt.is_settled() && attempt.to_ask().is_empty());
}

#[test]
fn copies_lie_in_distinct_zones() {
    let copies = Copies { nodes: 2, zones: 2 };
    let zones = [Some(1), Some(1), Some(2), None];
    let confirmed = |who: &[u128]| {
        let mut attempt = GiveUp::new(Attempt(7), set(&[1]), &peers(&zones), copies);
        for node in who {
            attempt.answered(&yes(7, *node, &[1]));
        }
        !attempt.confirmed().is_empty()
    };
    assert!(!confirmed(&[1, 2]));
    assert!(confirmed(&[1, 3]));
    assert!(confirmed(&[2, 4]));
}

/// The answer of a node with a bucket.
fn with_bucket(answer: HoldingsReply, listed: &[u64]) -> HoldingsReply {
    HoldingsReply {
        listed: Some(set(listed)),
        ..answer
    }
}

#[test]
fn what_a_bucket_lists_has_copies_enough() {
    let copies = Copies::on_nodes(3);
    let mut attempt = GiveUp::new(Attempt(7), set(&[1, 2]), &peers(&[None; 3]), copies);
    attempt.answered(&with_bucket(yes(7, 1, &[]), &[2, 9]));
    assert_eq!(attempt.confirmed(), set(&[2]));
    assert!(attempt.on_their_way().is_empty());
    // Two nodes are two copies all the same, bucket or not.
    let copies = Copies::on_nodes(2);
    let mut attempt = GiveUp::new(Attempt(7), set(&[1]), &peers(&[None; 2]), copies);
    attempt.answered(&with_bucket(yes(7, 1, &[1]), &[]));
    attempt.answered(&yes(7, 2, &[1]));
    assert_eq!(attempt.confirmed(), set(&[1]));
}

#[test]
fn where_one_copy_is_enough_it_is_the_one_in_the_bucket() {
    let asked = || {
        GiveUp::new(
            Attempt(7),
            set(&[1, 2]),
            &peers(&[None]),
            Copies::on_nodes(1),
        )
    };
    let mut attempt = asked();
    attempt.answered(&with_bucket(yes(7, 1, &[1, 2]), &[2]));
    assert_eq!(attempt.confirmed(), set(&[2]));
    assert_eq!(attempt.on_their_way(), set(&[1]));
    let mut attempt = asked();
    attempt.answered(&yes(7, 1, &[1]));
    assert_eq!(attempt.confirmed(), set(&[1]), "there is no bucket");
}

#[test]
fn other_contents_in_a_bucket_are_no_copy() {
    let content = |hash| Content {
        source: source(1),
        rows: 3,
        hash,
    };
    let mut attempt = GiveUp::new(Attempt(7), set(&[1]), &peers(&[None]), Copies::on_nodes(1))
        .expecting(&[content(10)]);
    let mut answer = with_bucket(yes(7, 1, &[]), &[1]);
    answer.contents = vec![content(11)];
    attempt.answered(&answer);
    assert!(attempt.confirmed().is_empty());
    assert_eq!(attempt.conflicts().len(), 1);
}

#[test]
fn other_contents_are_no_copy() {
    let content = |sequence, hash| Content {
        source: source(sequence),
        rows: 3,
        hash,
    };
    let expected = [content(1, 10), content(2, 20)];
    let peers = peers(&[None]);
    let mut attempt =
        GiveUp::new(Attempt(7), set(&[1, 2, 3]), &peers, Copies::on_nodes(1)).expecting(&expected);
    assert_eq!(
        attempt.question().sources,
        set(&[1, 2]),
        "3 is not known well enough"
    );
    assert!(attempt.question().with_contents);
    let mut answer = yes(7, 1, &[1, 2, 3]);
    answer.contents = vec![content(1, 10), content(2, 21)];
    assert!(attempt.answered(&answer));
    assert_eq!(attempt.confirmed(), set(&[1]));
    assert_eq!(attempt.conflicts(), [(NodeId(1), content(2, 21))]);
}

/// A node that has merged both copies of a batch lists the later one without rows.
#[test]
fn a_copy_that_yielded_is_a_copy_on_either_side() {
    let entry = |rows, hash, is_shadowed| SourceEntry {
        source: source(1),
        rows,
        hash,
        retry: Some(Retry {
            id: logpond_segment::batches::BatchId {
                epoch: 5,
                sequence: 0,
                attempt: 1,
                first_sent: logpond_record::Timestamp(0),
                more: 0,
            },
            is_shadowed,
        }),
    };
    let whole = Content::of(&entry(3, 30, false));
    let yielded = Content::of(&entry(0, 0, true));
    // All of its rows are damaged.
    let empty = Content::of(&entry(0, 0, false));
    for (expected, said, is_copy) in [
        (whole, yielded, true),
        (yielded, whole, true),
        (yielded, yielded, true),
        (whole, whole, true),
        (whole, empty, false),
    ] {
        let peers = peers(&[None]);
        let attempt = GiveUp::new(Attempt(7), set(&[1]), &peers, Copies::on_nodes(1));
        let mut attempt = attempt.expecting(&[expected]);
        let mut answer = yes(7, 1, &[1]);
        answer.contents = vec![said];
        let answer = HoldingsReply::from_bytes(&answer.to_bytes()).unwrap();
        assert!(attempt.answered(&answer));
        assert_eq!(
            !attempt.confirmed().is_empty(),
            is_copy,
            "{expected:?} {said:?}"
        );
        assert_eq!(attempt.conflicts().is_empty(), is_copy);
    }
}

#[test]
fn a_yes_without_the_contents_that_were_asked_for_is_none() {
    let content = Content {
        source: source(1),
        rows: 3,
        hash: 4,
    };
    let mut attempt = GiveUp::new(Attempt(7), set(&[1]), &peers(&[None]), Copies::on_nodes(1))
        .expecting(&[content]);
    assert!(attempt.answered(&yes(7, 1, &[1])));
    assert!(attempt.confirmed().is_empty());
}

/// If this fails because the layout has changed, raise the version; `LOGPOND_BLESS=1` writes the
/// files.
#[test]
fn the_bytes_are_those_of_the_golden_files() {
    let question = WhoHolds {
        attempt: Attempt(u128::MAX - 1),
        sources: set(&[0, 1, 300]),
        with_contents: true,
    };
    let mut answer = yes(3, 4, &[0, 300]);
    answer.listed = Some(set(&[1, 2]));
    answer.contents.push(Content {
        source: source(300),
        rows: 1000,
        hash: u128::MAX,
    });
    golden("v1.who-holds", &question.to_bytes());
    golden("v2.held", &answer.to_bytes());
    assert_eq!(WhoHolds::from_bytes(&question.to_bytes()), Ok(question));
    assert_eq!(HoldingsReply::from_bytes(&answer.to_bytes()), Ok(answer));
}

fn golden(name: &str, bytes: &[u8]) {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cluster");
    let path = directory.join(name);
    if std::env::var_os("LOGPOND_BLESS").is_some() {
        std::fs::write(&path, bytes).unwrap();
    }
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "{name}");
}

#[test]
fn not_too_many_contents_are_asked_for() {
    let question = WhoHolds {
        attempt: Attempt(1),
        sources: set(&(0..CONTENTS_MAX + 1).collect::<Vec<_>>()),
        with_contents: true,
    };
    assert_eq!(
        WhoHolds::from_bytes(&question.to_bytes()),
        Err(DecodeError::Malformed("the number of contents"))
    );
}

proptest! {
    #[test]
    fn messages_come_back(attempt: u128, node: u128, numbers: Vec<u16>, hash: u128) {
        let numbers: Vec<u64> = numbers.into_iter().map(u64::from).collect();
        let question = WhoHolds::new(Attempt(attempt), set(&numbers));
        let bytes = question.to_bytes();
        prop_assert_eq!(WhoHolds::from_bytes(&bytes), Ok(question));
        for length in 0..bytes.len() {
            prop_assert!(WhoHolds::from_bytes(&bytes[..length]).is_err());
        }
        let mut answer = yes(attempt, node, &numbers);
        answer.contents = numbers.iter().map(|n| Content { source: source(*n), rows: *n, hash }).collect();
        let bytes = answer.to_bytes();
        prop_assert_eq!(HoldingsReply::from_bytes(&bytes), Ok(answer));
        for length in 0..bytes.len() {
            prop_assert!(HoldingsReply::from_bytes(&bytes[..length]).is_err());
        }
    }

    #[test]
    fn layers_count(lists in prop::collection::vec(prop::collection::vec(0u64..10, 0..8), 0..6), count in 1usize..4) {
        let sets: Vec<SourceSet> = lists.iter().map(|list| set(list)).collect();
        let model: Vec<u64> = (0..10)
            .filter(|n| sets.iter().filter(|set| set.contains(source(*n))).count() >= count)
            .collect();
        prop_assert_eq!(held_by(&sets, count), set(&model));
    }
}
