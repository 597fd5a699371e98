//! Calls that block, made at once: each on a thread of its own, which ends before the answer.

use std::thread;

/// Makes a call for each item at once, and waits for all of them. Gives the items in their order,
/// each with what its call gave: nothing, if the call panicked or the system gave it no thread. The
/// caller bounds the items: they are nodes, or what is sent to some.
pub fn side_by_side<I: Copy + Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    call: impl Fn(I) -> T + Sync,
) -> Vec<(I, Option<T>)> {
    thread::scope(|scope| {
        let call = &call;
        let begin = |item| {
            let spawned = thread::Builder::new().spawn_scoped(scope, move || call(item));
            (item, spawned.ok())
        };
        // All are begun before the first is waited for.
        let calls: Vec<_> = items.into_iter().map(begin).collect();
        let ended = calls.into_iter();
        ended
            .map(|(item, thread)| (item, thread.and_then(|thread| thread.join().ok())))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn all_run_at_once_and_answers_are_in_order() {
        // None passes before all have come.
        let met = Barrier::new(3);
        let answers = side_by_side([3, 1, 2], |number| {
            met.wait();
            number * 10
        });
        assert_eq!(answers, [(3, Some(30)), (1, Some(10)), (2, Some(20))]);
    }

    #[test]
    fn one_that_panics_has_no_answer() {
        let answers = side_by_side([1, 0], |number: u32| 6u32.div_euclid(number));
        assert_eq!(answers, [(1, Some(6)), (0, None)]);
    }
}
