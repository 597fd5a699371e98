//! Texts that lines show with escapes, in any spelling: JSON libraries write more escapes than are needed.

use super::*;

/// A text and how a line spells it. One text may have several spellings.
const PIECES: [(&str, &str); 40] = [
    ("a", "a"),
    ("b", "b"),
    ("user", "user"),
    ("Zo", "Zo"),
    ("u003e", "u003e"),
    ("n", "n"),
    ("-", "-"),
    (" ", " "),
    (" ", " "),
    ("=", "="),
    (":", ":"),
    ("]", "]"),
    ("5", "5"),
    // Go's encoding/json, with and without its escapes for HTML.
    ("> ", r"\u003e "),
    (">", ">"),
    ("&", r"\u0026"),
    ("<", r"\u003c"),
    ("\u{2028}", r"\u2028"),
    // PHP.
    ("/", r"\/"),
    ("/", "/"),
    // Python and others that write ASCII only; .NET, in upper case.
    ("é", r"\u00e9"),
    ("É", r"\u00C9"),
    ("é", "é"),
    ("中", r"\u4e2d"),
    ("İ", r"\u0130"),
    ("😀", r"\ud83d\ude00"),
    ("🔥", r"\uD83D\uDD25"),
    ("+", r"\u002B"),
    ("k", r"\u006b"),
    // Characters that need an escape, in each of its spellings.
    ("\n", r"\n"),
    ("\n", r"\u000a"),
    ("\n", r"\u000A"),
    ("\t", r"\t"),
    ("\t", r"\u0009"),
    ("\u{1b}[", r"\u001b["),
    ("\u{1b}", r"\u001B"),
    ("\"", r#"\""#),
    ("\"", r"\u0022"),
    ("\\", r"\\"),
    ("\\", r"\u005c"),
];

/// Shapes whose slots for texts are escaped differently.
const SHAPES: [&str; 8] = [
    r#"{"msg":"⟨_msg:j⟩","user":"⟨user:j⟩","o":{"k":"⟨o.k:j⟩"}}"#,
    r#"{"i":⟨i:i⟩,"message":"⟨_msg:j⟩"}"#,
    r#"{"user":"⟨user:j⟩","rare-":"⟨rare-:j⟩"}"#,
    r#"<13>⟨host:t⟩ {"user":"⟨user:j⟩","msg":"⟨_msg:j⟩"}"#,
    r#"level=⟨level:t⟩ msg="⟨_msg:q⟩" user="⟨user:q⟩""#,
    r#"[x a="⟨x.a:d⟩"] ⟨_msg:t⟩"#,
    "⟨host:t⟩: ⟨_msg:t⟩",
    Shape::TEXT,
];

/// A text of some pieces, and its spelling; one in four spells everything as it must be.
fn text(seed: u64) -> (String, Option<String>) {
    let count = 1 + mix(seed) % 7;
    let pieces = (1..=count).map(|at| PIECES[(mix(seed * 64 + at) % 40) as usize]);
    let (text, spelled): (String, String) = pieces.unzip();
    (text, (!mix(seed ^ 5).is_multiple_of(4)).then_some(spelled))
}

fn escaped(count: u64) -> Vec<Record<'static>> {
    let mut shapes = ShapeTable::new();
    let record = |n: u64| {
        let shape = SHAPES[(mix(n) % 8) as usize];
        let shape = shape.replace("rare-", &format!("rare-{}", n % 50));
        let shape = shapes.intern(shape.as_bytes()).unwrap();
        let mut record = unlabelled(n);
        record.message = Message::Absent;
        record.values = Vec::new();
        for (at, slot) in shape.slots().iter().enumerate() {
            let is_escaped = slot.is_message() || !matches!(&*slot.name, "i" | "host" | "level");
            let (value, spelled) = if is_escaped {
                text(n * 8 + at as u64)
            } else {
                (format!("{}", n % 9), None)
            };
            let mut rendered = Vec::new();
            slot.kind.write_text(value.as_bytes(), &mut rendered);
            if let Some(spelled) = spelled.filter(|spelled| *spelled.as_bytes() != rendered) {
                record.fixes.push(Fix {
                    slot: at as u16,
                    text: spelled.into_bytes().into(),
                });
            }
            let value = match slot.kind {
                SlotKind::Int => Value::Int(n as i64),
                _ => Value::Str(value.into()),
            };
            if slot.is_message() {
                record.message = Message::Part(value);
                record.values.push(Value::Null);
            } else {
                record.values.push(value)
            }
        }
        record.shape = shape;
        if n.is_multiple_of(23) {
            let mut line = Vec::new();
            record.write_line(&mut line);
            line.push(b' ');
            record.whole = Some(line.into());
            record.fixes.clear();
        }
        record
    };
    (0..count).map(record).collect()
}

#[test]
fn escaped_texts_are_found_where_they_are() {
    find_parts(&escaped(400));
}

/// Messages as Go, PHP and Python write them.
#[test]
fn spellings_of_libraries_are_found() {
    let shape = Arc::new(Shape::new(r#"{"msg":"⟨_msg:j⟩"}"#).unwrap());
    let table = [
        ("a -> b", r"a -\u003e b"),
        ("https://shop/cart", r"https:\/\/shop\/cart"),
        ("Zoé", r"Zo\u00e9"),
        ("\u{1b}[31mred", r"\u001B[31mred"),
        ("plain", "plain"),
    ];
    let mut records = samples(table.len() as u64);
    for (record, (text, spelled)) in records.iter_mut().zip(table) {
        record.shape = Arc::clone(&shape);
        record.message = Message::Part(Value::Str(text.into()));
        (record.values, record.whole) = (vec![Value::Null], None);
        record.fixes = if text == spelled {
            Vec::new()
        } else {
            vec![Fix {
                slot: 0,
                text: spelled.as_bytes().into(),
            }]
        };
    }
    let segment = segment_of(&records);
    for (query, expected) in [
        (r#""a -> b""#, &[0][..]),
        (r#""a -\\u003e b""#, &[0]),
        (r#"/a -> [bc]/"#, &[0]),
        (r#"NOT "a -> b""#, &[1, 2, 3, 4]),
        (r#""https://shop/cart""#, &[1]),
        (r#"i"zoé""#, &[2]),
        (r#""[31mred""#, &[3]),
        (r#"_raw:"a -> b""#, &[]),
        (r#"_msg:"a -> b" OR plain"#, &[0, 4]),
    ] {
        let found = found_by(&segment, &parse(query).unwrap());
        let expected: Vec<Id> = expected.iter().map(|at: &usize| records[*at].id).collect();
        assert_eq!(found, expected, "{query}");
    }
}
