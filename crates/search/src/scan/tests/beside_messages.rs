//! Expressions whose matches begin in a message or before it, and end in it or behind it.

use super::*;

const SHAPES: [&str; 6] = [
    "⟨host:t⟩ ⟨app:t⟩: ⟨_msg:t⟩",
    "⟨host:t⟩ ⟨_msg:t⟩. ⟨app:t⟩",
    "⟨host:t⟩⟨_msg:t⟩⟨app:t⟩",
    r#"{"msg":"⟨_msg:j⟩","app":"⟨app:j⟩","host":"⟨host:j⟩"}"#,
    r#"app=⟨app:t⟩ msg="⟨_msg:q⟩" host=⟨host:t⟩"#,
    "timeout after ⟨host:t⟩ ⟨app:t⟩ ⟨_msg:t⟩",
];

/// Messages with a match, with its beginning only, with its end only, and with escapes.
const MESSAGES: [&str; 8] = [
    "timeout after 20 ms",
    "timeout after 30",
    "timeout after ",
    "after 40 ms",
    "timeout after \"50 ms",
    "a timeout after\t60 ms",
    "timeout aft",
    "nothing",
];

const VALUES: [&str; 5] = [
    "70 ms",
    "timeout after 80",
    "out after 90 ms",
    "timeout after",
    "x",
];

fn records() -> Vec<Record<'static>> {
    let mut shapes = ShapeTable::new();
    let record = |n: usize| {
        let shape = shapes.intern(SHAPES[n % 6].as_bytes()).unwrap();
        let mut record = unlabelled(n as u64);
        let seed = mix(n as u64) as usize;
        record.message = Message::Part(Value::Str(MESSAGES[seed % 8].into()));
        let value = |slot: &logpond_record::Slot| match &*slot.name {
            "app" => Value::Str(VALUES[seed / 8 % 5].into()),
            "host" => Value::Str(VALUES[seed / 40 % 5].into()),
            _ => Value::Null,
        };
        record.values = shape.slots().iter().map(value).collect();
        if seed.is_multiple_of(13)
            && let Some(slot) = shape.message_slot()
            && shape.slots()[slot].kind == SlotKind::JsonString
        {
            record.message = Message::Part(Value::Str("\u{b5}out".into()));
            let text = br"\u00b5out".to_vec().into();
            record.fixes.push(Fix {
                slot: slot as u16,
                text,
            });
        }
        record.shape = shape;
        record
    };
    (0..600).map(record).collect()
}

#[test]
fn matches_are_found_wherever_they_begin_and_end() {
    let records = records();
    let segment = segment_of_blocks(&records, 1, 400);
    let expressions = [
        "timeout after [0-9]+ ms",
        "timeout after [0-9]*",
        "timeout after [0-9]+. [a-z]",
        "timeout after [0-9]+\",\"app",
        "timeout after [0-9]+\" host",
        "timeout after [0-9]+[a-z]+ after",
        "timeout after [^x]*ms",
        "timeout after [^x]*after [0-9]0",
        "timeout after.[0-9]+ ms",
        "timeout after [^0-9]*[0-9]+ ms",
        "(?:timeout|timer) after [0-9]+",
        "time[a-z]* after [\"\\\\]*[0-9]+",
        "b5out[^z]*app",
        "timeout [a-z]{3}[^a-z]*ms",
    ];
    for expression in expressions {
        for case in [false, true] {
            let filter = Filter::Text(Pattern::regex(expression, case));
            let expected: Vec<Id> = wanted(&records, &filter).iter().map(|r| r.id).collect();
            assert!(!expected.is_empty(), "{expression}");
            assert_eq!(found_by(&segment, &filter), expected, "{expression}");
        }
    }
}
