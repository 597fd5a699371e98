use std::sync::atomic::AtomicUsize;
use std::thread;

use logpond_search::Room;

use super::*;
use crate::memory::{CacheRoom, GivesWay, Usage};

const MIB: usize = 1 << 20;

/// A budget of so many MiB; what is measured is what is set here.
fn budget(mib: usize, measured_mib: usize) -> (Arc<Budget>, Arc<AtomicUsize>) {
    let in_use = Arc::new(AtomicUsize::new(measured_mib * MIB));
    let measured = Arc::clone(&in_use);
    let meter = move || {
        let bytes = measured.load(Ordering::Relaxed);
        Usage {
            in_use: bytes,
            resident: 0,
            files: 0,
        }
    };
    (Budget::measured_by(mib * MIB, Box::new(meter)), in_use)
}

fn query(budget: &Arc<Budget>) -> Arc<Lease> {
    Lease::of_query(budget, 0, &mut || true).unwrap()
}

/// A query that holds so much, its base included.
fn holding(budget: &Arc<Budget>, mib: usize) -> (Arc<Lease>, Charge) {
    let lease = query(budget);
    let mut charge = Charge::new(Some(&lease));
    let bytes = mib * MIB - budget.query_bytes();
    charge.set_while(bytes, &mut || true).unwrap();
    (lease, charge)
}

#[test]
fn what_a_query_has_comes_back_with_its_end() {
    let (budget, _) = budget(128, 0);
    assert_eq!(budget.query_bytes(), 12 * MIB);
    let (first, mut charge) = holding(&budget, 64);
    assert_eq!(charge.set_while(53 * MIB, &mut || true), Err(LeaseStopped));
    let refusal = first.refusal().unwrap();
    let expected = Refusal {
        asked: MIB,
        held: 64 * MIB,
        in_use: 64 * MIB,
        budget: 128 * MIB,
        kept_free: 0,
    };
    assert_eq!(refusal, expected);
    let text = refusal.to_string();
    let numbers = "the query has 64.0 MiB of memory and needs 1.0 MiB more; one query may have \
                   64.0 MiB, half of 128.0 MiB: ";
    assert!(text.starts_with(numbers), "{text}");
    assert!(text.contains("--memory"), "{text}");
    let (second, others) = holding(&budget, 64);
    let error = Lease::of_query(&budget, 0, &mut || false).unwrap_err();
    assert!(error.is_none(), "it was not wanted any more");
    drop((charge, first));
    let (third, mut charge) = holding(&budget, 54);
    charge.set_while(0, &mut || true).unwrap();
    others.leave();
    drop(second);
    let all = [third, query(&budget), query(&budget)];
    for lease in &all {
        let mut charge = Charge::new(Some(lease));
        charge.set_while(50 * MIB, &mut || true).unwrap();
    }
}

#[test]
fn pages_of_files_leave_room_for_queries() {
    let meter = || Usage {
        in_use: 9 * MIB,
        resident: 9 * MIB,
        files: 60 * MIB,
    };
    let budget = Budget::measured_by(32 * MIB, Box::new(meter));
    let lease = query(&budget);
    // 9 MiB, 8 of files and 6.4 of the query are in use.
    let mut charge = Charge::new(Some(&lease));
    assert!(charge.set_while(8 * MIB, &mut || true).is_ok());
    assert!(charge.set_while(9 * MIB, &mut || true).is_err());
}

#[test]
fn what_is_measured_counts_too() {
    let (budget, _) = budget(128, 100);
    let lease = query(&budget);
    let mut charge = Charge::new(Some(&lease));
    charge.set_while(12 * MIB, &mut || true).unwrap();
    charge.set_soon(18 * MIB);
    assert!(charge.is_refused());
    let text = lease.refusal().unwrap().to_string();
    let numbers =
        "has 24.0 MiB of memory and needs 6.0 MiB more, but 124.0 MiB of 128.0 MiB are in use";
    assert!(text.contains(numbers), "{text}");
}

/// A step of the store takes memory for a moment: a query alone waits for that.
#[test]
fn a_query_alone_waits_for_memory_that_is_taken_for_a_moment() {
    let (budget, in_use) = budget(128, 20);
    in_use.store(125 * MIB, Ordering::Relaxed);
    budget.measure_now();
    let later = budget.open();
    let asked = budget.ask(&later.account, 12 * MIB, None);
    assert!(matches!(asked, Answer::Later));
    in_use.store(20 * MIB, Ordering::Relaxed);
    let lease = query(&budget);
    let mut charge = Charge::new(Some(&lease));
    in_use.store(125 * MIB, Ordering::Relaxed);
    budget.measure_now();
    let in_use = Arc::clone(&in_use);
    let mut is_waiting = || {
        in_use.store(20 * MIB, Ordering::Relaxed);
        true
    };
    assert!(charge.set_while(30 * MIB, &mut is_waiting).is_ok());
}

/// Work that goes on without its memory exceeds the budget at each step, so it waits between steps.
#[test]
fn who_goes_on_without_memory_waits_first() {
    let (budget, _) = budget(128, 0);
    let (_first, _charge) = holding(&budget, 64);
    let (_second, mut charge) = holding(&budget, 32);
    let _third = query(&budget);
    let begun = Instant::now();
    charge.set_soon(52 * MIB);
    assert!(begun.elapsed() >= SOON);
    assert!(!charge.is_refused());
    charge.set_soon(20 * MIB);
    assert!(charge.short_since.is_none());
}

/// The numbers of a refusal add up.
#[test]
fn a_query_that_does_not_begin_is_told_of_memory_that_is_kept_free() {
    let (budget, _) = budget(128, 0);
    let (_first, _charge) = holding(&budget, 64);
    let (_second, _other) = holding(&budget, 44);
    let third = budget.open();
    assert!(matches!(
        budget.ask(&third.account, 12 * MIB, None),
        Answer::Later
    ));
    budget.give_up(&third.account, 12 * MIB);
    let text = third.refusal().unwrap().to_string();
    let numbers = "needs 12.0 MiB more, but 108.0 MiB of 128.0 MiB are in use, and 16.0 MiB are kept free for \
                   queries that run: ";
    assert!(text.contains(numbers), "{text}");
}

/// A merge that has ended must not keep queries out as long as any of them runs.
#[test]
fn memory_that_others_give_back_is_there_while_queries_run() {
    let (budget, in_use) = budget(128, 100);
    let _first = query(&budget);
    in_use.store(40 * MIB, Ordering::Relaxed);
    let (_second, charge) = holding(&budget, 60);
    assert!(!charge.is_refused());
}

/// A query that begins anew has what it needs before others can take it.
#[test]
fn a_query_that_was_refused_begins_with_more() {
    let (budget, _) = budget(128, 10);
    let (first, _charge) = holding(&budget, 60);
    let (second, charge) = holding(&budget, 50);
    let mut more = Charge::new(Some(&second));
    assert!(more.set_while(12 * MIB, &mut || false).is_err());
    budget.give_up(&second.account, 12 * MIB);
    let bytes = second.bytes_for_another_try().unwrap();
    assert_eq!(bytes, 64 * MIB, "half of the budget at most");
    drop((more, charge, second, first));
    drop(_charge);
    let large = Lease::of_query(&budget, bytes, &mut || true).unwrap();
    let held = || large.account.held.load(Ordering::Relaxed);
    assert_eq!(held(), bytes);
    let mut charge = Charge::new(Some(&large));
    charge
        .set_while(bytes - budget.query_bytes(), &mut || true)
        .unwrap();
    assert_eq!(held(), bytes, "it is of the reserve");
    budget.give_up(&large.account, 12 * MIB);
    assert_eq!(
        large.bytes_for_another_try(),
        None,
        "it has all that it may have"
    );
}

#[test]
fn the_largest_query_ends_while_more_is_measured_than_there_may_be() {
    let (budget, in_use) = budget(128, 10);
    let (small, _small) = holding(&budget, 14);
    let (large, _large) = holding(&budget, 30);
    assert!(small.watch() && large.watch());
    in_use.store(150 * MIB, Ordering::Relaxed);
    // It is measured now and then.
    while large.watch() {
        thread::yield_now();
    }
    assert!(small.watch());
    let text = large.refusal().unwrap().to_string();
    assert!(text.starts_with("150.0 MiB of 128.0 MiB"), "{text}");
}

#[test]
fn who_begins_waits_for_one_that_ends() {
    let (budget, _) = budget(128, 0);
    let first = holding(&budget, 64);
    let second = holding(&budget, 63);
    let waiting = thread::spawn({
        let budget = Arc::clone(&budget);
        move || query(&budget).refusal()
    });
    while budget.waits() == 0 {
        thread::yield_now();
    }
    drop(first);
    assert_eq!(waiting.join().unwrap(), None);
    drop(second);
}

#[test]
fn of_queries_that_wait_for_each_other_the_largest_ends() {
    let (budget, _) = budget(128, 0);
    let all = [43, 42, 42].map(|mib| holding(&budget, mib));
    let more = all.map(|(lease, mut charge)| {
        let bytes = 44 * MIB;
        thread::spawn(move || {
            (
                charge.set_while(bytes, &mut || true),
                lease.refusal().is_some(),
            )
        })
    });
    let ends = more.map(|thread| thread.join().unwrap());
    assert_eq!(
        ends,
        [(Err(LeaseStopped), true), (Ok(()), false), (Ok(()), false)]
    );
}

struct Cache(AtomicUsize);

impl GivesWay for Cache {
    fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn give_way(&self, bytes: usize) -> usize {
        let freed = bytes.min(self.bytes());
        self.0.fetch_sub(freed, Ordering::Relaxed);
        freed
    }
}

#[test]
fn caches_give_way_to_queries_and_leave_them_room() {
    let (budget, _) = budget(128, 0);
    let room = CacheRoom::of(&budget);
    assert!(room.take(96 * MIB) && !room.take(1));
    let cache = Arc::new(Cache(AtomicUsize::new(100 * MIB)));
    budget.add_cache(cache.clone());
    let (_lease, _charge) = holding(&budget, 44);
    assert_eq!(cache.bytes(), 84 * MIB);
    let (_lease, _charge) = holding(&budget, 64);
    assert_eq!(cache.bytes(), 20 * MIB);
}

#[test]
fn a_follower_that_waits_and_a_reader_hold_little() {
    let (budget, _) = budget(128, 0);
    let follower = query(&budget);
    follower.idle();
    follower.idle();
    let reader = Lease::of_reader(&budget);
    let charge = Charge::of(&reader, 60 * MIB);
    let (_lease, _charge) = holding(&budget, 64);
    drop(reader);
    drop(charge);
    let (_lease, _charge) = holding(&budget, 63);
}

#[test]
fn while_memory_is_short_the_oldest_query_goes_first() {
    let (budget, in_use) = budget(128, 20);
    let (first, second) = (query(&budget), query(&budget));
    let reader = Lease::of_reader(&budget);
    let holds_back = |lease: &Lease| budget.should_hold_back(&lease.account);
    assert!(!holds_back(&first) && !holds_back(&second));
    in_use.store(120 * MIB, Ordering::Relaxed);
    budget.measure_now();
    assert!(!holds_back(&first) && holds_back(&second) && second.watch());
    assert!(second.held_back_ms.load(Ordering::Relaxed) > 0);
    drop(first);
    assert!(!holds_back(&second));
    // A reader that takes its time is no query.
    drop(reader);
    in_use.store(20 * MIB, Ordering::Relaxed);
    budget.measure_now();
    let third = query(&budget);
    assert!(!holds_back(&third));
}
