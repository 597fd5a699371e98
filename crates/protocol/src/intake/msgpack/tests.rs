use proptest::prelude::*;

use super::*;

#[test]
fn every_form_is_read() {
    type Row<'a> = (&'a [u8], Token<'a>);
    let table: [Row<'_>; 33] = [
        (b"\x00", Token::Int(0)),
        (b"\x7f", Token::Int(127)),
        (b"\xff", Token::Int(-1)),
        (b"\xe0", Token::Int(-32)),
        (b"\x82", Token::Map(2)),
        (b"\x93", Token::List(3)),
        (b"\xa2hi", Token::Text(b"hi")),
        (b"\xc0", Token::Nil),
        (b"\xc2", Token::Bool(false)),
        (b"\xc3", Token::Bool(true)),
        (b"\xc4\x01x", Token::Bytes(b"x")),
        (b"\xc5\x00\x01x", Token::Bytes(b"x")),
        (b"\xc6\x00\x00\x00\x01x", Token::Bytes(b"x")),
        (b"\xc7\x02\x05ab", Token::Extension(5, b"ab")),
        (b"\xc8\x00\x01\xffa", Token::Extension(-1, b"a")),
        (b"\xc9\x00\x00\x00\x01\x05a", Token::Extension(5, b"a")),
        (b"\xca\x3f\x00\x00\x00", Token::Float(0.5)),
        (b"\xcb\x3f\xe0\0\0\0\0\0\0", Token::Float(0.5)),
        (b"\xcc\xff", Token::Int(255)),
        (b"\xcd\x01\x00", Token::Int(256)),
        (b"\xce\xff\xff\xff\xff", Token::Int(4_294_967_295)),
        (
            b"\xcf\x7f\xff\xff\xff\xff\xff\xff\xff",
            Token::Int(i64::MAX),
        ),
        (b"\xcf\x80\0\0\0\0\0\0\0", Token::Big(1 << 63)),
        (b"\xd0\x80", Token::Int(-128)),
        (b"\xd1\xff\x00", Token::Int(-256)),
        (b"\xd2\x80\0\0\0", Token::Int(i64::from(i32::MIN))),
        (b"\xd3\x80\0\0\0\0\0\0\0", Token::Int(i64::MIN)),
        (b"\xd4\x01a", Token::Extension(1, b"a")),
        (b"\xd7\x00abcdefgh", Token::Extension(0, b"abcdefgh")),
        (b"\xd9\x02hi", Token::Text(b"hi")),
        (b"\xda\x00\x02hi", Token::Text(b"hi")),
        (b"\xdc\x01\x00", Token::List(256)),
        (b"\xdf\x00\x01\x00\x00", Token::Map(65_536)),
    ];
    for (bytes, token) in table {
        let mut reader = Reader::new(bytes);
        assert_eq!(reader.token(), Ok(token), "{}", bytes.escape_ascii());
        assert!(reader.is_at_end());
        for end in 0..bytes.len() {
            assert!(Reader::new(&bytes[..end]).token().is_err());
        }
    }
    assert!(Reader::new(b"\xc1").token().is_err());
}

fn fields(map: &[u8]) -> Vec<String> {
    let mut fields = Fields::new();
    flatten(map, &mut fields).unwrap();
    let each = fields.iter();
    each.map(|(name, value)| format!("{name}={value:?}"))
        .collect()
}

#[test]
fn maps_become_fields() {
    // {a: nil, m: {x: 1, e: {}}, l: [1, {k: "v"}, nil], 7: 2^63, b: ff, t: time}
    let map = b"\x86\xa1a\xc0\xa1m\x82\xa1x\x01\xa1e\x80\xa1l\x93\x01\x81\xa1k\xa1v\xc0\
        \x07\xcf\x80\0\0\0\0\0\0\0\xa1b\xa1\xff\xa1t\xd7\0\0\0\0\x05\0\0\0\x07";
    assert_eq!(
        fields(map),
        [
            "a=Null",
            "m.x=Int(1)",
            "m.e=Json(\"{}\")",
            "l=Json(\"[1,{\\\"k\\\":\\\"v\\\"},null]\")",
            "7=Json(\"9223372036854775808\")",
            "b=Bytes([255])",
            "t=Json(\"5.000000007\")",
        ]
    );
    assert!(flatten(b"\x90", &mut Fields::new()).is_err());
    assert!(flatten(b"\x81\x90\xc0", &mut Fields::new()).is_err());
}

#[test]
fn what_is_promised_is_not_believed() {
    // A list of 2^32 - 1 values, a map of them, and lists in lists.
    for bytes in [
        &b"\xdd\xff\xff\xff\xff"[..],
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
    ] {
        let found = ValueEnd::default().find(bytes, 1 << 20);
        assert_eq!(found, Err(MsgpackError::TooLong(1 << 20)));
        assert!(Reader::new(bytes).value().is_err());
    }
    let mut deep = vec![0x91; 1 << 20];
    deep.push(0xc0);
    let end = ValueEnd::default().find(&deep, 2 << 20);
    assert_eq!(end, Ok(Some(deep.len())));
    assert!(json(&deep).unwrap().contains("null"));
    let mut map = b"\x81\xa1d".to_vec();
    map.extend(deep);
    assert_eq!(fields(&map).len(), 1);
    let deep = [b"\x81\xa1d".repeat(5000), b"\xc0".to_vec()].concat();
    assert_eq!(fields(&deep).len(), 1);
    let many = [&b"\xde\x10\x00"[..], &b"\xa1n\x01".repeat(4096)].concat();
    assert_eq!(fields(&many).len(), FIELDS_MAX + 1);
}

proptest! {
    /// However a stream is cut, a value ends where its tokens end.
    #[test]
    fn ends_are_found_wherever_bytes_are_cut(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        step in 1usize..20,
    ) {
        let whole = ValueEnd::default().find(&bytes, 1 << 16);
        let mut end = ValueEnd::default();
        let mut bit_by_bit = Ok(None);
        for length in (0..bytes.len()).step_by(step).chain([bytes.len()]) {
            bit_by_bit = end.find(&bytes[..length], 1 << 16);
            if bit_by_bit != Ok(None) {
                break;
            }
        }
        prop_assert_eq!(&bit_by_bit, &whole);
        if let Ok(Some(end)) = whole {
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.value().map(<[u8]>::len), Ok(end));
            prop_assert!(json(&bytes[..end]).is_ok() || json(&bytes[..end]).is_err());
        }
    }
}
