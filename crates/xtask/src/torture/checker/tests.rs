//! Histories that are fine, and one for each thing that must not be.

use super::*;
use crate::torture::history::{
    AnswerEnd, FollowerEvent, InterfaceQuestion, QueryResult, Question, Row,
};
use logpond_record::Id;

const NODE: &str = "10.0.0.1:7659";
const OTHER: &str = "10.0.0.2:7659";

fn facts() -> Facts {
    Facts {
        clients: vec!["a".to_owned(), "b".to_owned()],
        addresses: vec![NODE.to_owned(), OTHER.to_owned()],
        start_time: Timestamp(1_800_000_000_000_000_000),
    }
}

/// So many seconds after the start, as nodes say it.
fn time(seconds: i64) -> String {
    facts()
        .start_time
        .saturating_add(seconds * 1_000_000_000)
        .to_string()
}

const SECOND: Micros = 1_000_000;

/// Ten records, sent in the second second and acknowledged by the first node in the third.
fn sent() -> Vec<Event> {
    vec![
        Event::Sent {
            client: 0,
            numbers: 0..10,
            at: SECOND,
        },
        Event::Acknowledged {
            client: 0,
            numbers: 0..10,
            place: 0,
            is_replicated: false,
            at: 2 * SECOND,
        },
    ]
}

fn rows(numbers: &[u64], missing: Option<&str>) -> Answer {
    Answer {
        question: Question::Rows(0, 0..100),
        place: 1,
        began: 3 * SECOND,
        ended: 4 * SECOND,
        found: QueryResult::Rows {
            numbers: numbers.to_vec(),
            altered: Vec::new(),
        },
        is_complete: missing.is_none(),
        missing: missing.into_iter().map(str::to_owned).collect(),
        is_missing_cut: false,
    }
}

fn count(number: u64, is_complete: bool) -> Answer {
    Answer {
        question: Question::Count(0),
        found: QueryResult::Counts(BTreeMap::from([(0, number)])),
        ..rows(&[], if is_complete { None } else { Some("node x: y") })
    }
}

fn kinds(answers: &[Answer]) -> Vec<&'static str> {
    let mut events = sent();
    events.extend(answers.iter().cloned().map(Event::Answered));
    check(&events, &facts())
        .iter()
        .map(|violation| violation.kind)
        .collect()
}

/// An answer through another interface.
fn through(is_one_view: bool, answer: Answer) -> Answer {
    Answer {
        question: Question::Through(InterfaceQuestion {
            interface: "another",
            is_one_view,
            client: 0,
            range: 0..100,
        }),
        ..answer
    }
}

const ALL: [u64; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

#[test]
fn what_is_right_passes() {
    assert_eq!(
        kinds(&[rows(&ALL, None), count(10, true), count(3, false)]),
        [""; 0]
    );
    // What was acknowledged after the question began may be there or not.
    let early = Answer {
        began: SECOND,
        ..rows(&ALL[..4], None)
    };
    assert_eq!(kinds(&[early]), [""; 0]);
    assert_eq!(
        kinds(&[Answer {
            began: SECOND,
            ..count(0, true)
        }]),
        [""; 0]
    );
}

#[test]
fn what_is_lost_is_not_complete() {
    assert_eq!(kinds(&[rows(&ALL[1..], None)]), ["FALSE COMPLETE"]);
    assert_eq!(kinds(&[count(9, true)]), ["FALSE COMPLETE"]);
    let top = Answer {
        question: Question::Top,
        ..count(9, true)
    };
    assert_eq!(kinds(&[top]), ["FALSE COMPLETE"]);
}

#[test]
fn all_interfaces_are_judged_alike() {
    let fine = [
        through(true, rows(&ALL, None)),
        through(true, count(10, true)),
    ];
    assert_eq!(kinds(&fine), [""; 0]);
    let lacking = through(true, rows(&ALL[1..], None));
    assert_eq!(kinds(&[lacking]), ["FALSE COMPLETE"]);
    assert_eq!(kinds(&[through(true, count(9, true))]), ["FALSE COMPLETE"]);
    assert_eq!(kinds(&[through(true, count(11, false))]), ["WRONG COUNT"]);
    let twice = rows(&[&ALL[..], &[4]].concat(), Some("node x: y"));
    assert_eq!(kinds(&[through(true, twice.clone())]), ["DUPLICATE"]);
    // The next page may have the original of a copy on the page before.
    assert_eq!(kinds(&[through(false, twice)]), [""; 0]);
    let of_nobody = through(true, rows(&[10], Some("node x: y")));
    assert_eq!(kinds(&[of_nobody]), ["INVENTED"]);
}

#[test]
fn rows_of_any_interface_are_visible() {
    let mut events = vec![Event::Sent {
        client: 0,
        numbers: 0..10,
        at: SECOND,
    }];
    let seen = through(true, rows(&ALL, Some("node x: y")));
    events.push(Event::Answered(seen));
    assert_eq!(there(&events, &facts()), [ALL.to_vec(), Vec::new()]);
}

#[test]
fn what_was_visible_stays_so() {
    // Sent, not acknowledged, and seen: it is durable.
    let mut events = vec![Event::Sent {
        client: 0,
        numbers: 0..10,
        at: SECOND,
    }];
    events.push(Event::Answered(rows(&ALL, Some("node x: y"))));
    let later = Answer {
        began: 5 * SECOND,
        ended: 6 * SECOND,
        ..rows(&ALL[..9], None)
    };
    events.push(Event::Answered(later));
    let found = check(&events, &facts());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, "FALSE COMPLETE");
    assert!(found[0].text.contains("[(9, 9)]"), "{}", found[0].text);
    assert_eq!(there(&events, &facts()), [ALL.to_vec(), Vec::new()]);
}

#[test]
fn nothing_is_there_twice_or_of_nobody() {
    let twice = [&ALL[..], &[4, 5]].concat();
    assert_eq!(kinds(&[rows(&twice, None)]), ["DUPLICATE"]);
    assert_eq!(kinds(&[rows(&twice, Some("node x: y"))]), ["DUPLICATE"]);
    assert_eq!(kinds(&[count(11, false)]), ["WRONG COUNT"]);
    let invented = [&ALL[..], &[10]].concat();
    assert_eq!(kinds(&[rows(&invented, None)]), ["INVENTED"]);
    let mut altered = rows(&ALL, None);
    altered.found = QueryResult::Rows {
        numbers: ALL.to_vec(),
        altered: vec![3],
    };
    assert_eq!(kinds(&[altered]), ["INVENTED"]);
    // Not sent yet when the answer ended.
    let early = Answer {
        began: 0,
        ended: SECOND / 2,
        ..rows(&ALL[..1], None)
    };
    assert_eq!(kinds(&[early]), ["INVENTED"]);
}

#[test]
fn a_wrong_clock_excuses_its_own_times_only() {
    const DAY: i64 = 86_400;
    let gap = |node: &str, from: i64, to: i64| {
        let (from, to) = (time(from), time(to));
        let text = format!("node {node}: what it took in from {from} to {to} (sources 5/1-2)");
        rows(&ALL[..9], Some(&text))
    };
    let judged = |place, days, at, answer: Answer| {
        let clock = Event::Clock { place, days, at };
        let mut events = sent();
        events.extend([clock, Event::Answered(answer)]);
        check(&events, &facts()).len()
    };
    let (ahead, behind) = (
        gap(NODE, 40 * DAY, 40 * DAY + 9),
        gap(NODE, -3 * DAY, 2 - 3 * DAY),
    );
    assert_eq!(judged(0, 40, 0, ahead.clone()), 0);
    assert_eq!(judged(0, -3, 0, behind.clone()), 0);
    // A clock that is wrong the other way, less wrong, of another node, or wrong only later.
    assert_eq!(judged(0, -3, 0, ahead.clone()), 1);
    assert_eq!(judged(0, 40, 0, behind), 1);
    assert_eq!(judged(0, 39, 0, ahead.clone()), 1);
    assert_eq!(judged(1, 40, 0, ahead.clone()), 1);
    assert_eq!(judged(0, 40, 3 * SECOND, ahead), 1);
}

#[test]
fn pages_may_repeat_only_what_was_not_proven() {
    let twice = [&ALL[..], &[4]].concat();
    let pages = |missing| Answer {
        question: Question::Pages(0, 0..100),
        ..rows(&twice, missing)
    };
    assert_eq!(kinds(&[pages(Some("node x: y"))]), [""; 0]);
    assert_eq!(kinds(&[pages(None)]), ["DUPLICATE"]);
}

#[test]
fn a_gap_names_who_and_when() {
    let said = |text: &str| kinds(&[rows(&ALL[..9], Some(text))]);
    let gap = |node: &str, from: i64, to: i64| {
        format!(
            "node {node}: what it took in from {} to {} (sources 5/1-2)",
            time(from),
            time(to)
        )
    };
    assert_eq!(said(&gap(NODE, 1, 2)), [""; 0]);
    assert_eq!(said(&gap(NODE, 0, 60)), [""; 0]);
    // Of another node, before it was sent, and after it was acknowledged.
    for wrong in [gap(OTHER, 1, 2), gap(NODE, -5, 0), gap(NODE, 3, 9)] {
        assert_eq!(said(&wrong), ["UNTRUTHFUL GAP"], "{wrong}");
    }
    let tail = |node: &str, since: i64| {
        format!(
            "node {node}: what it took in since {} or later (sources 5/7 and after)",
            time(since)
        )
    };
    assert_eq!(said(&tail(NODE, -60)), [""; 0]);
    assert_eq!(said(&tail(NODE, 5)), ["UNTRUTHFUL GAP"]);
    assert_eq!(said(&tail(OTHER, -60)), ["UNTRUTHFUL GAP"]);
    let open = format!(
        "node {NODE}: what it took in from {} on (sources 5/1-2)",
        time(0)
    );
    assert_eq!(said(&open), [""; 0]);
    // Nobody knows what a node has that nobody has heard of.
    assert_eq!(said(&format!("node {OTHER} does not answer")), [""; 0]);
    let nothing = Answer {
        missing: Vec::new(),
        ..rows(&ALL, Some(""))
    };
    assert_eq!(kinds(&[nothing]), ["UNTRUTHFUL GAP"]);
}

#[test]
fn what_was_refused_was_not_kept() {
    let events = vec![
        Event::Sent {
            client: 0,
            numbers: 0..10,
            at: SECOND,
        },
        Event::Refused {
            client: 0,
            numbers: 0..10,
            at: 2 * SECOND,
        },
        Event::Answered(rows(&[3], None)),
        Event::Answered(count(1, true)),
    ];
    let found = check(&events, &facts());
    let kinds: Vec<&str> = found.iter().map(|violation| violation.kind).collect();
    assert_eq!(kinds, ["KEPT THOUGH REFUSED", "WRONG COUNT"]);
}

#[test]
fn who_is_up_answers() {
    let unanswered = |began: u64, ended: u64| Event::Unanswered {
        question: Question::Top,
        place: 1,
        began: began * SECOND,
        ended: ended * SECOND,
        why: "refused".to_owned(),
    };
    let down = |place| {
        let (fault, down) = ("kill".to_owned(), vec![place]);
        [
            Event::Broken {
                fault: fault.clone(),
                kind: "kill",
                down: down.clone(),
                at: 10 * SECOND,
            },
            Event::Healed {
                fault,
                down,
                at: 20 * SECOND,
            },
        ]
    };
    let violations = |events: Vec<Event>| check(&events, &facts()).len();
    assert_eq!(violations(vec![unanswered(1, 2)]), 1);
    let [broken, healed] = down(1);
    for (began, ended, expected) in [(1, 9, 1), (9, 11, 0), (12, 13, 0), (19, 25, 0), (22, 23, 1)] {
        let events = vec![broken.clone(), healed.clone(), unanswered(began, ended)];
        assert_eq!(violations(events), expected, "{began} to {ended}");
    }
    // While it is down still, and while only another one is.
    assert_eq!(violations(vec![broken, unanswered(12, 13)]), 0);
    let [broken, healed] = down(0);
    assert_eq!(violations(vec![broken, healed, unanswered(12, 13)]), 1);
}

#[test]
fn what_was_seen_beside_answers_counts() {
    let (kind, text) = ("LOST", "all of it".to_owned());
    let found = check(&[Event::Wrong { kind, text, at: 5 }], &facts());
    assert_eq!(found[0].to_string(), "LOST: at 5: all of it");
}

/// What befell a follower from the fourth second on, after [`sent`], one second each.
fn followed(whats: Vec<FollowerEvent>) -> Vec<Event> {
    let each = (3..).zip(whats).map(|(second, what)| Event::Followed {
        follower: 0,
        what,
        at: second * SECOND,
    });
    each.collect()
}

fn kinds_followed(whats: Vec<FollowerEvent>) -> Vec<&'static str> {
    let events = [sent(), followed(whats)].concat();
    let found = check(&events, &facts());
    found.iter().map(|violation| violation.kind).collect()
}

fn asked(place: Place) -> FollowerEvent {
    FollowerEvent::Asked {
        place,
        is_first: false,
        goes_on: true,
    }
}

fn shown(numbers: &[u64]) -> FollowerEvent {
    let row = |number: &u64| Row {
        client: 0,
        number: *number,
        id: Id(u128::from(*number)),
        is_altered: false,
    };
    FollowerEvent::Shown(numbers.iter().map(row).collect())
}

fn told() -> FollowerEvent {
    FollowerEvent::Told("somewhere".to_owned())
}

fn ended(how: AnswerEnd) -> FollowerEvent {
    FollowerEvent::Ended {
        place: 0,
        began: 3 * SECOND,
        how,
    }
}

#[test]
fn a_follower_may_be_sent_again_what_came_behind_a_position() {
    let right = vec![
        asked(0),
        told(),
        shown(&ALL[..5]),
        ended(AnswerEnd::Left),
        asked(1),
        shown(&ALL[2..7]),
        ended(AnswerEnd::Silent),
        // Neither these nor those of the time before were sent before the position.
        asked(0),
        shown(&ALL),
        told(),
        FollowerEvent::Over,
    ];
    assert_eq!(kinds_followed(right), [""; 0]);
}

#[test]
fn a_follower_is_shown_nothing_twice() {
    let once = || vec![asked(0), shown(&ALL)];
    let followed_by = |rest: &[FollowerEvent]| kinds_followed([&once()[..], rest].concat());
    // In one answer, with and without a position between them.
    assert_eq!(followed_by(&[shown(&[3])]), ["DUPLICATE"]);
    assert_eq!(followed_by(&[told(), shown(&[3])]), ["DUPLICATE"]);
    // From elsewhere although the position is behind it, and once more than that can be.
    let back = [told(), asked(1), shown(&[3])];
    assert_eq!(followed_by(&back), ["DUPLICATE"]);
    let back = [asked(1), shown(&[3]), told(), shown(&[3])];
    assert_eq!(followed_by(&back), ["DUPLICATE"]);
    // Another sending is no other record.
    let mut copy = shown(&[3]);
    if let FollowerEvent::Shown(rows) = &mut copy {
        rows[0].id = Id(77);
    }
    assert_eq!(followed_by(&[told(), asked(1), copy]), ["DUPLICATE"]);
}

#[test]
fn a_follower_is_shown_everything_in_the_end() {
    let short = || vec![asked(0), shown(&ALL[1..]), told()];
    assert_eq!(kinds_followed(short()), [""; 0]);
    let over = [short(), vec![FollowerEvent::Over]].concat();
    assert_eq!(kinds_followed(over.clone()), ["NOT SHOWN"]);
    // What another one was shown is there, acknowledged or not.
    let mut events = vec![sent().remove(0)];
    events.extend(followed(over));
    assert_eq!(check(&events, &facts()), []);
    let what = shown(&ALL[..1]);
    let other = Event::Followed {
        follower: 1,
        what,
        at: 2 * SECOND,
    };
    events.push(other);
    assert_eq!(check(&events, &facts())[0].kind, "NOT SHOWN");
}

#[test]
fn following_from_an_answer_that_lacked_something_begins_with_it() {
    let from = |is_complete, began| {
        let first = FollowerEvent::Ended {
            place: 0,
            began,
            how: AnswerEnd::First { is_complete },
        };
        kinds_followed(vec![asked(0), told(), first, asked(0), FollowerEvent::Over])
    };
    assert_eq!(from(true, 3 * SECOND), ["NOT SHOWN"]);
    assert_eq!(from(false, 3 * SECOND), [""; 0]);
    assert_eq!(from(false, SECOND / 2), ["NOT SHOWN"]);
}

#[test]
fn a_follower_is_shown_nothing_invented() {
    assert_eq!(kinds_followed(vec![asked(0), shown(&[10])]), ["INVENTED"]);
    let mut altered = shown(&[3]);
    if let FollowerEvent::Shown(rows) = &mut altered {
        rows[0].is_altered = true;
    }
    assert_eq!(kinds_followed(vec![asked(0), altered]), ["INVENTED"]);
    let refused = Event::Refused {
        client: 0,
        numbers: 0..10,
        at: 2 * SECOND,
    };
    let events = [sent(), vec![refused], followed(vec![shown(&[3])])].concat();
    assert_eq!(check(&events, &facts())[0].kind, "KEPT THOUGH REFUSED");
}

#[test]
fn who_is_up_is_followed_to_the_end() {
    let broken = || {
        ended(AnswerEnd::Broken {
            why: "reset".to_owned(),
        })
    };
    let stopped = |missing: &[&str]| {
        let missing = missing.iter().map(ToString::to_string).collect();
        ended(AnswerEnd::Stopped { missing })
    };
    assert_eq!(kinds_followed(vec![broken()]), ["NO ANSWER"]);
    assert_eq!(kinds_followed(vec![stopped(&["it stops"])]), ["NO ANSWER"]);
    let down = Event::Broken {
        fault: "restart".to_owned(),
        kind: "restart",
        down: vec![0],
        at: 2 * SECOND,
    };
    let while_down = |what| {
        let events = [vec![down.clone()], followed(vec![what])].concat();
        let found = check(&events, &facts());
        found.iter().map(|v| v.kind).collect::<Vec<_>>()
    };
    assert_eq!(while_down(broken()), [""; 0]);
    assert_eq!(while_down(stopped(&["it stops"])), [""; 0]);
    assert_eq!(while_down(stopped(&[])), ["UNTRUTHFUL GAP"]);
    // In the end everybody is stopped.
    let over = vec![shown(&ALL), FollowerEvent::Over, stopped(&["it stops"])];
    assert_eq!(kinds_followed(over), [""; 0]);
}

#[test]
fn notices_take_turns() {
    let notice = |answers| FollowerEvent::Noticed {
        node: format!("node {NODE}"),
        answers,
    };
    let judged = |notices: &[bool], events: &[Event]| {
        let notices = notices.iter().map(|answers| notice(*answers));
        let whats: Vec<FollowerEvent> = std::iter::once(asked(0)).chain(notices).collect();
        check(&[events, &followed(whats)].concat(), &facts()).len()
    };
    assert_eq!(judged(&[false, true, false], &[]), 0);
    assert_eq!(judged(&[true], &[]), 1);
    assert_eq!(judged(&[false, false], &[]), 1);
    let lost = Event::Broken {
        fault: "lost disk".to_owned(),
        kind: "lost disk",
        down: vec![0],
        at: SECOND,
    };
    assert_eq!(judged(&[false, false], &[lost]), 0);
}
