//! Patterns of messages, merged in any order, sent, and too many of them.

use logpond_record::Value;
use proptest::prelude::*;

use super::*;

const SECOND: i64 = 1_000_000_000;

fn new() -> Patterns {
    let range = TimeRange {
        from: Timestamp(0),
        to: Timestamp(100 * SECOND),
    };
    Patterns::new(range, 10 * SECOND).unwrap()
}

fn counted<'m>(messages: impl IntoIterator<Item = &'m str>) -> Patterns {
    let mut patterns = new();
    for (at, message) in messages.into_iter().enumerate() {
        let time = Timestamp(at as i64 % 100 * SECOND);
        patterns.add_message("info", time, message.as_bytes(), false);
    }
    patterns
}

fn texts(answer: &PatternsAnswer) -> Vec<(String, u64)> {
    let text = |pattern: &Pattern| String::from_utf8_lossy(&pattern.text).into_owned();
    let patterns = answer.patterns.iter();
    patterns.map(|p| (text(p), p.count)).collect()
}

#[test]
fn messages_that_differ_in_numbers_or_in_many_names_are_one_pattern() {
    let users = ["ann", "bob", "cid", "dan"].map(|user| format!("login of {user} from web ok"));
    let others = [
        "disk 1 is full",
        "disk 2 is full",
        "job opened",
        "job closed",
    ];
    let messages = users.iter().map(String::as_str).chain(others);
    let answer = counted(messages).finish(0);
    let expected = [
        ("login of <_> from web ok", 4),
        ("disk <_> is full", 2),
        ("job closed", 1),
        ("job opened", 1),
    ];
    assert_eq!(
        texts(&answer),
        expected.map(|(text, n)| (text.to_owned(), n))
    );
    let first = &answer.patterns[0];
    assert_eq!(first.buckets, [(Timestamp(0), 4)]);
    let samples: Vec<_> = first.samples.iter().map(|s| s.time.0 / SECOND).collect();
    assert_eq!(samples, [3, 2, 1]);
    assert_eq!(counted(others).finish(1).distinct, 3);
}

#[test]
fn requests_are_told_apart_by_what_they_ask_for_not_by_clients() {
    let shape = "⟨remote_addr:t⟩ ⟨user:t⟩ \"⟨method:t⟩ ⟨path:t⟩\" ⟨status:i⟩ \"⟨agent:q⟩\"";
    let mut patterns = new();
    let requests = [
        ("::1", "-", "/cart", "curl"),
        ("fe80::ab", "ann", "/cart", "a browser (of two words)"),
        ("::1", "ann", "/item/7", "curl"),
    ];
    for (address, user, path, agent) in requests {
        let texts = [address, user, "GET", path].map(|text| Value::Str(text.into()));
        let rest = [Value::Int(200), Value::Str(agent.into())];
        let values = texts.into_iter().chain(rest).collect();
        let mut record = crate::tests::record(shape, values, Message::Absent);
        record.time = Timestamp(SECOND);
        patterns.add(&record);
    }
    let answer = patterns.finish(0);
    let expected = [
        (r#"<_> <_> "GET /cart" <_> "<_>""#, 2),
        (r#"<_> <_> "GET /item/<_>" <_> "<_>""#, 1),
    ];
    let expected = expected.map(|(text, count)| (text.to_owned(), count));
    assert_eq!(texts(&answer), expected);
    let newest = &*answer.patterns[1].samples[0].text;
    assert_eq!(newest, br#"::1 ann "GET /item/7" 200 "curl""#);
}

/// A few messages that come again and again are not one with a variable word, however alike they are.
#[test]
fn frequent_messages_stay_apart_from_variable_ones() {
    let of = |text: &str, count: usize| vec![format!("trace 7 span 8 {text} request"); count];
    let words = ["Received", "Completed", "Rejected", "Queued", "Dropped"];
    let mut messages: Vec<String> = words.iter().flat_map(|word| of(word, 100)).collect();
    messages.extend(
        ["ann", "bob", "cid", "dan"]
            .iter()
            .flat_map(|name| of(name, 2)),
    );
    let answer = counted(messages.iter().map(String::as_str)).finish(0);
    let mut expected: Vec<(String, u64)> = words
        .iter()
        .map(|word| (format!("trace <_> span <_> {word} request"), 100))
        .collect();
    expected.sort();
    expected.push(("trace <_> span <_> <_> request".to_owned(), 8));
    assert_eq!(texts(&answer), expected);
    // More than a list is good for are one.
    let names = (0..40_u8).map(|n| {
        format!(
            "{}{}",
            char::from(b'a' + n % 26),
            "x".repeat(1 + n as usize / 26)
        )
    });
    let messages: Vec<String> = names.flat_map(|name| of(&name, 40)).collect();
    let answer = counted(messages.iter().map(String::as_str)).finish(0);
    assert_eq!(
        texts(&answer),
        [("trace <_> span <_> <_> request".to_owned(), 1600)]
    );
}

#[test]
fn what_words_begin_and_end_with_stays() {
    let paths = ["a", "b", "c", "d"].map(|p| format!("GET \"/blog/{p}.html\" by agent"));
    let answer = counted(paths.iter().map(String::as_str)).finish(0);
    assert_eq!(
        texts(&answer),
        [("GET \"/blog/<_>.html\" by agent".to_owned(), 4)]
    );
}

#[test]
fn shorter_messages_replace_longer_ones() {
    let long = "9".repeat(400);
    let messages = [&long, "88", "7", "6"].map(|number| format!("job {number}"));
    let patterns = counted(messages.iter().map(String::as_str));
    assert!(patterns.bytes < 400, "{}", patterns.bytes);
    assert_eq!(patterns.finish(0).patterns[0].samples.len(), 3);
}

#[test]
fn levels_are_kept_apart() {
    let mut patterns = new();
    for level in ["warn", "error", "warn"] {
        patterns.add_message(level, Timestamp(0), b"slow", false);
    }
    let answer = patterns.finish(0);
    let found: Vec<_> = answer
        .patterns
        .iter()
        .map(|p| (&*p.level, p.count))
        .collect();
    assert_eq!(found, [(&b"warn"[..], 2), (b"error", 1)]);
}

#[test]
fn too_many_templates_lose_no_record() {
    let mut patterns = new();
    // No two of them agree in enough words.
    let word = |n: usize| ["ax", "by", "cz", "dw", "ev", "fu", "gt", "hs"][n % 8];
    let count = 3 * TEMPLATES_MAX;
    for n in 0..count {
        let words: Vec<String> = (0..6).map(|p| word(n >> (3 * p)).repeat(1 + p)).collect();
        patterns.add_message("", Timestamp(0), words.join("-").as_bytes(), false);
    }
    assert!(patterns.found.len() <= TEMPLATES_MAX + 1);
    let answer = patterns.finish(0);
    assert!(answer.is_coarse);
    let sum: u64 = answer.patterns.iter().map(|p| p.count).sum();
    assert_eq!(sum, count as u64);
}

proptest! {
    #[test]
    fn merging_in_any_order_equals_counting_at_once(
        messages in proptest::collection::vec("[ab]{1,2} [cd][0-9]{1,4} (e|f|g|h|i) end [xy]", 0..120),
        split in 0usize..120,
    ) {
        let all = || messages.iter().enumerate();
        let count = |part: &dyn Fn(usize) -> bool| {
            let mut patterns = new();
            for (at, message) in all().filter(|(at, _)| part(*at)) {
                let time = Timestamp(at as i64 * SECOND / 2);
                patterns.add_message("info", time, message.as_bytes(), false);
            }
            patterns
        };
        let whole = count(&|_| true).finish(0);
        let (mut first, second) = (count(&|at| at < split), count(&|at| at >= split));
        let mut sent = Encoder::new(1);
        second.encode(&mut sent);
        let sent = sent.finish();
        let mut received = first.clone();
        let mut from = Decoder::new(&sent, 1).unwrap();
        prop_assert_eq!(received.merge_encoded(&mut from), Ok(()));
        let mut reversed = second.clone();
        reversed.merge(first.clone());
        first.merge(second);
        for merged in [first, received, reversed] {
            prop_assert_eq!(&merged.finish(0), &whole);
        }
        let sum: u64 = whole.patterns.iter().map(|p| p.count).sum();
        prop_assert_eq!(sum, messages.len() as u64);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut patterns = new();
        let mut from = Decoder::bare(&bytes);
        let _ = patterns.merge_encoded(&mut from);
        patterns.finish(0);
    }
}
