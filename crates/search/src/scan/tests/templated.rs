//! Messages of a few templates over many blocks: what templates decide is what messages hold.

use super::*;

/// Parts of messages. Those with a digit, and some of hexadecimal letters, are left out of templates.
const PIECES: [&str; 40] = [
    "error",
    "error7",
    "7error",
    "err",
    "o",
    "a",
    "bad",
    "cafe",
    "deadbeef",
    "facade",
    "Error",
    "ERROR42",
    "K",
    "\u{212a}elvin",
    "\u{17f}",
    "größe",
    "z",
    "Z",
    "5Z",
    "_",
    "<_>",
    "<",
    ">",
    "x_1",
    " ",
    " ",
    " ",
    "-",
    "-",
    ": ",
    ".",
    "/",
    "=",
    "]",
    "\"",
    "\\",
    "\t",
    "\n",
    "12",
    "0",
];

const SHAPES: [&str; 5] = [
    "⟨host:t⟩ ⟨app:t⟩: ⟨_msg:t⟩",
    "<⟨facility:p⟩⟨severity:v⟩>⟨_time:%b %e %H:%M:%S⟩ ⟨host:t⟩ ⟨_msg:t⟩.",
    r#"{"msg":"⟨_msg:j⟩","app":"⟨app:j⟩"}"#,
    r#"app=⟨app:t⟩ msg="⟨_msg:q⟩""#,
    Shape::TEXT,
];

/// A message of one of a few kinds. Of each kind the same numbers change from message to message.
fn message(seed: u64, n: u64) -> String {
    let kind = mix(seed ^ n) % 7;
    let count = 1 + mix(seed + kind) % 9;
    let piece = |at: u64| {
        let chosen = mix(seed * 64 + kind * 16 + at);
        let piece = PIECES[(chosen % 40) as usize];
        match piece {
            "12" | "0" => format!("{}", mix(n + at) % 30),
            "error7" if n.is_multiple_of(60) => format!("rare{}", n % 7),
            piece => piece.to_owned(),
        }
    };
    (0..count).map(piece).collect()
}

pub(super) fn templated(seed: u64, count: u64) -> Vec<Record<'static>> {
    let mut shapes = ShapeTable::new();
    let record = |n: u64| {
        let shape = SHAPES[(mix(seed ^ n ^ 99) % 5) as usize];
        let shape = shapes.intern(shape.as_bytes()).unwrap();
        let mut record = unlabelled(n);
        let text = message(seed, n);
        let bytes = || Value::Bytes([text.as_bytes(), b"\xff"].concat().into());
        record.message = Message::Part(match n % 97 {
            5 => bytes(),
            _ => Value::Str(text.clone().into()),
        });
        let value = |slot: &logpond_record::Slot| match &slot.kind {
            SlotKind::Facility => Value::Int(1),
            SlotKind::Severity => Value::Int((n % 8) as i64),
            SlotKind::Time(_) => Value::Null,
            _ if slot.is_message() => Value::Null,
            _ if &*slot.name == "app" => Value::Str(PIECES[(n % 3) as usize].into()),
            _ => Value::Str(format!("h{}", n % 4).into()),
        };
        record.values = shape.slots().iter().map(value).collect();
        if let Some(slot) = shape.message_slot().filter(|_| n.is_multiple_of(11))
            && shape.slots()[slot].kind == SlotKind::JsonString
            && let Some(first) = text.bytes().next().filter(u8::is_ascii_alphanumeric)
        {
            let mut spelled = format!("\\u00{first:02x}").into_bytes();
            SlotKind::JsonString.write_text(&text.as_bytes()[1..], &mut spelled);
            record.message = Message::Part(Value::Str(text.clone().into()));
            record.fixes.push(Fix {
                slot: slot as u16,
                text: spelled.into(),
            });
        }
        record.shape = shape;
        if n.is_multiple_of(53) {
            let mut line = Vec::new();
            record.write_line(&mut line);
            line.extend_from_slice(b" error7");
            record.whole = Some(line.into());
            record.fixes.clear();
        }
        record
    };
    (0..count).map(record).collect()
}

#[test]
fn templates_decide_as_messages_do() {
    for seed in 0..12 {
        let records = templated(seed, 500);
        let segment = segment_of_blocks(&records, 1, 700);
        let directory = segment.read_directory().unwrap();
        let blocks = directory.row_groups[0].blocks.len();
        assert!(blocks > 3, "{blocks} blocks");
        let texts = segment.row_group(&directory, 0).template_texts().unwrap();
        assert!(texts.is_some_and(|texts| texts.len() > 1), "seed {seed}");
        find_parts_in(&segment, &records);
    }
}

/// Pages with messages are not read where templates tell everything.
#[test]
fn messages_are_read_only_where_templates_do_not_tell() {
    let words = ["accepted", "refused", "timed"];
    let mut records = samples(600);
    for (n, record) in records.iter_mut().enumerate() {
        let text = format!(
            "connection {} from 10.0.0.{} id{}",
            words[n % 3],
            n % 250,
            mix(n as u64)
        );
        record.shape = Arc::new(Shape::new(SHAPES[0]).unwrap());
        record.values = ["h1", "sshd"].map(|text| Value::Str(text.into())).to_vec();
        record.values.push(Value::Null);
        record.message = Message::Part(Value::Str(text.into()));
        (record.whole, record.fixes) = (None, Vec::new());
        record.labels.clear();
    }
    let segment = segment_of_blocks(&records, 1, 400);
    let directory = segment.read_directory().unwrap();
    let bytes_read = |query: &str| {
        let filter = parse(query).unwrap();
        let evaluator = Evaluator::new(&filter, TimeRange::ALL).unwrap();
        let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
        let mut scan = GroupScan::new(&shared, 0);
        let mut rows = 0;
        scan.for_each_block(|_, selected| {
            rows += selected.rows.len();
            Ok(true)
        })
        .unwrap();
        (rows, scan.bytes_read())
    };
    let columns = &directory.row_groups[0].columns;
    let of_messages: u64 = columns[7]
        .pages
        .iter()
        .map(|page| u64::from(page.bytes))
        .sum();
    for (query, rows) in [
        ("refused", 200),
        ("onnection", 600),
        ("i\"FROM 10\"", 600),
        ("NOT timed", 400),
        ("\"accepted from\"", 200),
        ("/(refused|accepted)/", 400),
    ] {
        let (found, bytes) = bytes_read(query);
        assert_eq!(found, rows, "{query}");
        let reads_messages = bytes > of_messages;
        assert_eq!(
            reads_messages,
            query.contains("10"),
            "{query}: {bytes} bytes of {of_messages}"
        );
    }
}
