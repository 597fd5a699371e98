//! Who is given which files, and what becomes of them.

use std::path::PathBuf;

use logpond_record::{Incarnation, Timestamp};
use proptest::prelude::*;

use super::*;

const INGESTER: NodeId = NodeId(100);
const STORES: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];

fn day() -> Day {
    Day::of(Timestamp(0))
}

fn file(sequence: u64, bytes: u64) -> OfferedFile {
    OfferedFile {
        content: Content {
            source: SourceId {
                incarnation: Incarnation(1),
                sequence,
            },
            rows: 1,
            hash: u128::from(sequence),
        },
        bytes,
    }
}

fn set(numbers: &[u64]) -> SourceSet {
    numbers.iter().map(|n| file(*n, 0).content.source).collect()
}

const SETTINGS: Settings = Settings {
    lease_ms: 60_000,
    claim_bytes: 100,
    claim_rows: 10,
    gather_ms: 1_000,
    slot_ms: 600_000,
    steal_ms: 30_000,
    retry_ms: 30_000,
    claims_per_store_max: 2,
};

/// So many files of 40 bytes, closed at the start.
fn offers(count: u64) -> Offers {
    let mut offers = Offers::new(INGESTER, SETTINGS);
    (0..count).for_each(|n| offers.add(file(n, 40), day(), 0));
    offers
}

fn owner(offers: &Offers) -> (NodeId, NodeId) {
    let owner = offers.owner(&STORES, 0).expect("there are stores");
    let other = STORES.into_iter().find(|store| *store != owner);
    (owner, other.expect("there are several"))
}

fn claim(offers: &mut Offers, store: NodeId, id: u128, now_ms: u64) -> Result<SourceSet, NoWork> {
    let claim = offers.claim(store, &STORES, ClaimId(id), now_ms)?;
    Ok(claim.sources())
}

#[test]
fn a_claim_waits_until_it_is_worth_it() {
    let mut offers = offers(2);
    let (owner, _) = owner(&offers);
    let later = NoWork {
        until_ms: Some(1000),
    };
    assert_eq!(claim(&mut offers, owner, 1, 999), Err(later));
    assert_eq!(claim(&mut offers, owner, 1, 1000), Ok(set(&[0, 1])));
    assert_eq!(
        claim(&mut offers, owner, 2, 1000),
        Err(NoWork {
            until_ms: Some(61_000)
        }),
        "nothing is left until the lease ends"
    );
}

#[test]
fn much_is_handed_out_at_once_and_in_pieces() {
    let mut offers = offers(7);
    let (owner, _) = owner(&offers);
    assert_eq!(claim(&mut offers, owner, 1, 0), Ok(set(&[0, 1])));
    assert_eq!(claim(&mut offers, owner, 2, 0), Ok(set(&[2, 3])));
    assert!(
        claim(&mut offers, owner, 3, 0).is_err(),
        "two claims are enough"
    );
}

/// However few bytes they have, many rows are a claim, and no more of them than one is to have.
#[test]
fn many_rows_are_handed_out_at_once_and_in_pieces() {
    let settings = Settings {
        claims_per_store_max: 3,
        ..SETTINGS
    };
    let mut offers = Offers::new(INGESTER, settings);
    for (number, rows) in [4, 4, 4, 30, 1].into_iter().enumerate() {
        let mut file = file(number as u64, 1);
        file.content.rows = rows;
        offers.add(file, day(), 0);
    }
    let (owner, _) = owner(&offers);
    let claims = [set(&[0, 1]), set(&[2]), set(&[3])];
    for (number, expected) in (1..).zip(claims) {
        let sources = claim(&mut offers, owner, number, 0);
        assert_eq!(sources, Ok(expected), "claim {number}");
    }
}

#[test]
fn files_of_two_days_are_not_claimed_together() {
    let mut offers = Offers::new(INGESTER, SETTINGS);
    let next = Day::of(Timestamp(86_400_000_000_000));
    for (number, day) in [(0, day()), (1, next), (2, day())] {
        offers.add(file(number, 10), day, 0);
    }
    let (owner, _) = owner(&offers);
    assert_eq!(claim(&mut offers, owner, 1, 1000), Ok(set(&[0, 2])));
    assert_eq!(claim(&mut offers, owner, 2, 1000), Ok(set(&[1])));
}

#[test]
fn what_a_bucket_is_to_list_is_asked_for_again_in_a_while() {
    let mut offers = offers(1);
    let (owner, _) = owner(&offers);
    assert_eq!(claim(&mut offers, owner, 1, 2000), Ok(set(&[0])));
    offers.reported(ClaimId(1), &set(&[0]), 2100);
    assert_eq!(offers.candidates(2100).len(), 1);
    offers.on_their_way(&set(&[0]), 2100);
    assert!(offers.candidates(3099).is_empty());
    assert!(
        claim(&mut offers, owner, 2, 3099).is_err(),
        "nobody need take it"
    );
    assert_eq!(offers.candidates(3100).len(), 1);
}

#[test]
fn others_help_out_with_what_is_old() {
    let mut offers = offers(5);
    let (_, other) = owner(&offers);
    let later = NoWork {
        until_ms: Some(30_001),
    };
    assert_eq!(claim(&mut offers, other, 1, 30_000), Err(later));
    // A third of 200 bytes is one file.
    assert_eq!(claim(&mut offers, other, 1, 30_001), Ok(set(&[0])));
}

#[test]
fn what_a_store_fails_to_do_is_offered_again() {
    let mut offers = offers(2);
    let (owner, other) = owner(&offers);
    assert_eq!(claim(&mut offers, owner, 1, 2000), Ok(set(&[0, 1])));
    offers.failed(ClaimId(1), 3000);
    assert_eq!(
        claim(&mut offers, owner, 2, 3500),
        Err(NoWork {
            until_ms: Some(4000)
        })
    );
    assert_eq!(claim(&mut offers, owner, 2, 4000), Ok(set(&[0, 1])));
    assert!(offers.extend(ClaimId(2), 50_000));
    assert!(claim(&mut offers, other, 3, 64_000).is_err());
    assert!(!offers.extend(ClaimId(1), 64_000));
    // The lease ends at 110 s, which counts as a failure.
    assert!(claim(&mut offers, other, 3, 110_000).is_err());
    assert_eq!(claim(&mut offers, other, 3, 112_000), Ok(set(&[0])));
}

#[test]
fn what_is_reported_is_tried_at_once_and_all_now_and_then() {
    let contents = |list: Vec<Content>| list.into_iter().map(|c| c.source).collect::<SourceSet>();
    let mut offers = offers(3);
    let (owner, _) = owner(&offers);
    assert_eq!(claim(&mut offers, owner, 1, 1000), Ok(set(&[0, 1])));
    assert_eq!(contents(offers.candidates(2000)), set(&[]));
    offers.reported(ClaimId(1), &set(&[0]), 2000);
    assert_eq!(contents(offers.candidates(2000)), set(&[0]));
    offers.kept(&set(&[0]), 2000);
    assert_eq!(contents(offers.candidates(3000)), set(&[]));
    assert_eq!(contents(offers.candidates(30_000)), set(&[1, 2]));
    assert_eq!(contents(offers.candidates(32_000)), set(&[0]));
    offers.dropped(&set(&[0, 2]));
    assert_eq!(offers.sources(), set(&[1]));
    assert_eq!((offers.bytes(), offers.waiting_count()), (40, 1));
    assert_eq!(offers.oldest_age_ms(700), Some(700));
}

#[test]
fn what_is_safe_is_offered_no_more() {
    let mut offers = offers(1);
    let (owner, _) = owner(&offers);
    offers.safe(&set(&[0]));
    assert!(claim(&mut offers, owner, 1, 5000).is_err());
    assert_eq!((offers.bytes(), offers.oldest_age_ms(9)), (0, None));
    assert_eq!(offers.candidates(5000).len(), 0);
    assert_eq!(offers.candidates(30_000).len(), 1);
    offers.kept(&set(&[0]), 30_000);
    assert_eq!(claim(&mut offers, owner, 1, 31_000), Ok(set(&[0])));
}

#[test]
fn a_report_without_a_claim_counts_too() {
    let mut offers = offers(1);
    offers.reported(ClaimId(77), &set(&[0]), 5);
    assert_eq!(offers.candidates(5).len(), 1);
    assert_eq!(offers.waiting_count(), 0);
    offers.kept(&set(&[0]), 6);
    assert_eq!(offers.waiting_count(), 1);
}

/// A zone is missing: those that have the file can only report it again.
#[test]
fn what_was_kept_again_and_again_is_offered_less_and_less_often() {
    let mut offers = offers(1);
    let (owner, _) = owner(&offers);
    let mut now_ms = 5_000;
    for (id, wait_ms) in [(1, 0), (2, 0), (3, 1_000), (4, 2_000)] {
        if wait_ms > 0 {
            assert!(claim(&mut offers, owner, id, now_ms + wait_ms - 1).is_err());
        }
        now_ms += wait_ms;
        assert_eq!(claim(&mut offers, owner, id, now_ms), Ok(set(&[0])), "{id}");
        offers.reported(ClaimId(id), &set(&[0]), now_ms);
        offers.kept(&set(&[0]), now_ms);
    }
}

/// If this fails because the layout has changed, raise the version; `LOGPOND_BLESS=1` writes the
/// file.
#[test]
fn the_bytes_are_those_of_the_golden_file() {
    let claim = Claim {
        id: ClaimId(5),
        files: vec![file(0, 40), file(300, u64::MAX)],
        lease_ms: 60_000,
    };
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cluster/v1.claim");
    if std::env::var_os("LOGPOND_BLESS").is_some() {
        std::fs::write(&path, claim.to_bytes()).unwrap();
    }
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes, claim.to_bytes());
    assert_eq!(Claim::from_bytes(&bytes), Ok(claim));
    for length in 0..bytes.len() {
        assert!(Claim::from_bytes(&bytes[..length]).is_err());
    }
}

proptest! {
    /// Whatever happens, everything is offered in the end to whoever asks.
    #[test]
    fn nothing_is_forgotten(
        steps in prop::collection::vec((0u8..6, 0u64..8, 0u64..20_000), 0..40),
    ) {
        let mut offers = offers(0);
        let (mut now_ms, mut added) = (0, SourceSet::new());
        for (id, (what, number, pass_ms)) in (0u128..).zip(steps) {
            now_ms += pass_ms;
            match what {
                0 | 1 => {
                    offers.add(file(number, 40), day(), now_ms);
                    added.union_with(&set(&[number]));
                }
                2 => drop(claim(&mut offers, STORES[number as usize % 3], id, now_ms)),
                3 => offers.failed(ClaimId(id.saturating_sub(u128::from(number))), now_ms),
                4 => offers.reported(ClaimId(id.saturating_sub(2)), &set(&[number]), now_ms),
                _ => drop(offers.candidates(now_ms)),
            }
        }
        prop_assert_eq!(offers.sources(), added.clone());
        now_ms += 1_000_000;
        let tried: SourceSet = offers.candidates(now_ms).into_iter().map(|c| c.source).collect();
        prop_assert_eq!(&tried, &added, "all are tried");
        offers.kept(&tried, now_ms);
        let mut taken = SourceSet::new();
        for id in 1000.. {
            offers.end_leases(now_ms);
            now_ms += BACKOFF_MS_MAX;
            match claim(&mut offers, STORES[0], id, now_ms) {
                Ok(sources) => {
                    taken.union_with(&sources);
                    offers.dropped(&sources);
                    offers.failed(ClaimId(id), now_ms);
                }
                Err(_) if offers.is_empty() => break,
                Err(_) => prop_assert!(id < 1100, "never given out"),
            }
        }
        prop_assert_eq!(taken, added);
    }
}
