use super::*;

fn split(input: &[u8], max: usize) -> Vec<(String, usize)> {
    let mut splitter = FrameSplitter::new(max);
    let mut frames = Vec::new();
    let mut take =
        |f: Frame<'_>| frames.push((f.bytes.escape_ascii().to_string(), f.truncated_bytes));
    splitter.feed(input, &mut take);
    splitter.finish(&mut take);
    frames
}

type Row<'a> = (&'a [u8], &'a [(&'a str, usize)]);

/// Streams, and their frames with the bytes that are missing of each.
const STREAMS: &[Row<'_>] = &[
    (b"", &[]),
    (b"\n\r\n\0", &[]),
    (
        b"<1>a\n<2>b\r\n<3>c\0<4>d",
        &[("<1>a", 0), ("<2>b", 0), ("<3>c", 0), ("<4>d", 0)],
    ),
    (b"5 <1>ab6 <2>abc", &[("<1>ab", 0), ("<2>abc", 0)]),
    // A line end behind a counted frame is swallowed.
    (
        b"5 <1>ab\n5 <1>cd\r\n<2>e\n",
        &[("<1>ab", 0), ("<1>cd", 0), ("<2>e", 0)],
    ),
    (b"6 <1>a\nb<2>c\n", &[("<1>a\\nb", 0), ("<2>c", 0)]),
    // As is one that was counted with it.
    (b"6 <1>ab\n5 <1>cd", &[("<1>ab", 0), ("<1>cd", 0)]),
    (
        b"9 <1>a\nb\r\n\x006 <1>\n \n<2>c\n",
        &[("<1>a\\nb", 0), ("<1>\\n ", 0), ("<2>c", 0)],
    ),
    // Not so the end of one that did not come whole.
    (b"16 <1>1\n", &[("<1>1\\n", 11)]),
    // Numbers that are no counts.
    (b"2026 plain\n<1>a\n", &[("2026 plain", 0), ("<1>a", 0)]),
    (
        b"99999999999 <13>x\n<1>a\n",
        &[("99999999999 <13>x", 0), ("<1>a", 0)],
    ),
    (
        b"99999999 <13>x\n<1>a\n",
        &[("99999999 <13>x", 0), ("<1>a", 0)],
    ),
    (b"0 <1>a\n", &[("0 <1>a", 0)]),
    (b"16<1>1\n", &[("16<1>1", 0)]),
    (b"1", &[("1", 0)]),
    (b"12 ", &[("12 ", 0)]),
    // Nor those that no whole priority follows, or one that is longer.
    (
        b"5 <b>bold</b>\n<1>a\n",
        &[("5 <b>bold</b>", 0), ("<1>a", 0)],
    ),
    (b"5 <\n<1>a\n", &[("5 <", 0), ("<1>a", 0)]),
    (b"3 <13>x\n<1>a\n", &[("3 <13>x", 0), ("<1>a", 0)]),
    (b"3 <1>4 <2>x", &[("<1>", 0), ("<2>x", 0)]),
    // A mark of byte order is counted.
    (
        b"7 \xef\xbb\xbf<1>x<2>a\n",
        &[("\\xef\\xbb\\xbf<1>x", 0), ("<2>a", 0)],
    ),
    // Frames that end with NUL may have several lines.
    (
        b"<1>a\nb\n\0<2>c\n12 d\0<3>e\n<4>f\n\0",
        &[
            ("<1>a\\nb", 0),
            ("<2>c\\n12 d", 0),
            ("<3>e", 0),
            ("<4>f", 0),
        ],
    ),
    // Until an LF is seen to end one.
    (
        b"<1>a\0<2>b\r\n4 <3>c<4>d\ne\n",
        &[("<1>a", 0), ("<2>b", 0), ("<3>c", 0), ("<4>d", 0), ("e", 0)],
    ),
    // Lines without a priority end with LF.
    (b"<1>a\0b\nc\0", &[("<1>a", 0), ("b", 0), ("c", 0)]),
    // Announced and not sent.
    (b"16 <1>1", &[("<1>1", 12)]),
    // Longer than the limit.
    (
        b"<1>456789012345678901\n<2>b\n",
        &[("<1>456789012345678", 3), ("<2>b", 0)],
    ),
    (
        b"20 <1>45678901234567890<2>b\n",
        &[("<1>456789012345678", 2), ("<2>b", 0)],
    ),
];

#[test]
fn frames_are_told_apart() {
    for (input, expected) in STREAMS {
        let frames = split(input, 18);
        let frames: Vec<_> = frames.iter().map(|(f, t)| (&f[..], *t)).collect();
        assert_eq!(frames, *expected, "{}", input.escape_ascii());
    }
}

#[test]
fn a_long_count_is_not_allocated() {
    let mut splitter = FrameSplitter::new(1 << 20);
    splitter.feed(b"33554432 <13>x", |_| panic!("no frame has ended"));
    assert!(splitter.held_bytes() < 100 && splitter.partial.capacity() < 1000);
}
