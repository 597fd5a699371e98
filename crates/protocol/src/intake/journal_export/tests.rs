//! Tables and properties of the journal export format.

use proptest::prelude::*;

use super::*;

type Owned = Result<Vec<(String, Vec<u8>)>, EntryFault>;

fn split(chunks: &[&[u8]]) -> (Vec<Owned>, Result<Option<Partial>, ExportError>) {
    let (mut entries, mut splitter) = (Vec::new(), ExportSplitter::new());
    for chunk in chunks {
        let fed = splitter.feed(chunk, |entry| {
            entries.push(entry.map(|fields| {
                let each = fields.iter();
                each.map(|(name, value)| (name.to_owned(), value.to_vec()))
                    .collect()
            }));
        });
        if let Err(error) = fed {
            return (entries, Err(error));
        }
        assert!(splitter.held_bytes() <= ENTRY_BYTES_MAX);
    }
    (entries, Ok(splitter.partial()))
}

fn field(name: &str, value: &[u8]) -> (String, Vec<u8>) {
    (name.to_owned(), value.to_vec())
}

#[test]
fn entries_are_fields_up_to_an_empty_line() {
    let stream =
        b"\n\nA=1\nMESSAGE=x=y\n\nM\n\x03\0\0\0\0\0\0\0a\nb\nE\n\0\0\0\0\0\0\0\0\nA=\nA=2\n\n\n";
    let (entries, end) = split(&[stream]);
    assert_eq!(end, Ok(None));
    assert_eq!(
        entries,
        [
            Ok(vec![field("A", b"1"), field("MESSAGE", b"x=y")]),
            Ok(vec![
                field("M", b"a\nb"),
                field("E", b""),
                field("A", b""),
                field("A", b"2")
            ]),
        ]
    );
}

#[test]
fn what_is_unfinished_is_told() {
    let within = |fields| {
        Ok(Some(Partial {
            fields,
            is_within_field: true,
        }))
    };
    let between = Ok(Some(Partial {
        fields: 1,
        is_within_field: false,
    }));
    let table: [(&[u8], _); 8] = [
        (b"", Ok(None)),
        (b"A=1\n\n", Ok(None)),
        (b"A=1\n", between),
        (b"A", within(0)),
        (b"A=1\nB", within(1)),
        (b"A\n\x01\0\0\0", within(0)),
        (b"A\n\x01\0\0\0\0\0\0\0", within(0)),
        (b"A\n\x01\0\0\0\0\0\0\0x", within(0)),
    ];
    for (stream, end) in table {
        assert_eq!(split(&[stream]).1, end, "{}", stream.escape_ascii());
    }
}

#[test]
fn what_is_no_export_ends_the_stream() {
    let (entries, end) = split(&[b"A=1\n\nB\n\x01\0\0\0\0\0\0\0xy"]);
    assert_eq!((entries.len(), end), (1, Err(ExportError::End { at: 16 })));
    let (_, end) = split(&[b"some text\nwithout fields\nof a journal\n"]);
    assert!(
        matches!(end, Err(ExportError::Length { at: 10, .. })),
        "{end:?}"
    );
}

#[test]
fn a_bad_entry_takes_no_other_with_it() {
    let good: Owned = Ok(vec![field("A", b"1")]);
    let long_text = [b"M=", &vec![b'x'; ENTRY_BYTES_MAX][..], b"\nB=2\n\n"].concat();
    let length = (ENTRY_BYTES_MAX as u64).to_le_bytes();
    let value = vec![b'\n'; ENTRY_BYTES_MAX];
    let long_value = [
        b"A=3\nM\n",
        &length[..],
        &value,
        b"\nB\n\0\0\0\0\0\0\0\0\n\n",
    ]
    .concat();
    let no_end_of_name = [&vec![b'N'; 300][..], b"\n\x02\0\0\0\0\0\0\0\n\n\n\n"].concat();
    let many = b"F=\n".repeat(ENTRY_FIELDS_MAX + 1);
    let many = [&many[..], b"\n"].concat();
    let table: [(&[u8], EntryFault); 6] = [
        (&long_text, EntryFault::TooLong),
        (&long_value, EntryFault::TooLong),
        (&no_end_of_name, EntryFault::Name),
        (b"=1\n\n", EntryFault::Name),
        (b"\xff=1\n\n", EntryFault::Name),
        (&many, EntryFault::TooManyFields),
    ];
    for (bad, fault) in table {
        let (entries, end) = split(&[b"A=1\n\n", bad, b"A=1\n\n"]);
        assert_eq!(end, Ok(None));
        assert_eq!(entries, [good.clone(), Err(fault), good.clone()]);
    }
    let most = [&b"F=\n".repeat(ENTRY_FIELDS_MAX)[..], b"\n"].concat();
    assert!(split(&[&most]).0[0].is_ok());
}

fn entries() -> impl Strategy<Value = Vec<Vec<(String, Vec<u8>)>>> {
    let value = prop_oneof![
        "[ -~\t\u{e4}]{0,12}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..12),
        Just(b"\n\n".to_vec()),
        Just("\u{85}".as_bytes().to_vec()),
    ];
    let field = ("[A-Z_]{1,4}", value);
    prop::collection::vec(prop::collection::vec(field, 1..5), 0..6)
}

proptest! {
    /// What is written is read, wherever it is cut.
    #[test]
    fn what_is_written_is_read(entries in entries(), cuts in prop::collection::vec(any::<u16>(), 0..6)) {
        let mut stream = Vec::new();
        for entry in &entries {
            let each = entry.iter().map(|(name, value)| (&**name, &**value));
            write_entry(each, &mut stream);
        }
        let mut cuts: Vec<usize> =
            cuts.iter().map(|cut| usize::from(*cut) % (stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
        let (read, end) = split(&chunks);
        prop_assert_eq!(end, Ok(None));
        let written: Vec<Owned> = entries.into_iter().map(Ok).collect();
        prop_assert_eq!(read, written);
    }
}
