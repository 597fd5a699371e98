use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn internet(source: &str, destination: &str) -> Addresses {
    Addresses::Internet {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    }
}

#[test]
fn lines_are_read() {
    let four = internet("192.0.2.1:40000", "192.0.2.2:443");
    let six = internet("[2001:db8::1]:1", "[2001:db8::2]:65535");
    let table = [
        ("PROXY TCP4 192.0.2.1 192.0.2.2 40000 443\r\n", four),
        ("PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n", six),
        ("PROXY UNKNOWN\r\n", Addresses::Unknown),
        ("PROXY UNKNOWN what ever 1 2 3\r\n", Addresses::Unknown),
    ];
    for (line, addresses) in table {
        let (header, length) = decode(line.as_bytes()).unwrap().unwrap();
        let expected = (addresses, line.len());
        assert_eq!((header.addresses, length), expected, "{line}");
    }
}

#[test]
fn lines_that_are_wrong_are_refused() {
    let table = [
        (
            "PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n",
            HeaderError::Line,
        ),
        ("PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n", HeaderError::Line),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n", HeaderError::Line),
        (
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n",
            HeaderError::Line,
        ),
        ("PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n", HeaderError::Line),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n", HeaderError::Line),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n", HeaderError::Line),
        (
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n",
            HeaderError::Line,
        ),
        ("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n", HeaderError::Line),
        ("PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n", HeaderError::Line),
        (
            "PROXY TCP4 192.0.2.256 192.0.2.2 1 2\r\n",
            HeaderError::Line,
        ),
        ("PROXY\r\n", HeaderError::NoHeader),
        ("GET / HTTP/1.1\r\n", HeaderError::NoHeader),
        ("\u{16}\u{3}\u{1}", HeaderError::NoHeader),
    ];
    for (line, error) in table {
        assert_eq!(decode(line.as_bytes()), Err(error), "{line}");
    }
    let endless = format!("PROXY UNKNOWN {}", "x".repeat(200));
    assert_eq!(decode(endless.as_bytes()), Err(HeaderError::Line));
    assert_eq!(decode(&endless.as_bytes()[..106]), Ok(None));
}

/// What a header of this command, family and rest is made of.
fn binary_header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    bytes.extend([command, family]);
    bytes.extend(u16::try_from(rest.len()).unwrap().to_be_bytes());
    bytes.extend(rest);
    bytes
}

#[test]
fn binary_headers_are_read() {
    let four = [192, 0, 2, 1, 192, 0, 2, 2, 0x9c, 0x40, 1, 0xbb];
    let addresses = internet("192.0.2.1:40000", "192.0.2.2:443");
    let with = |extra: &[u8]| [&four[..], extra].concat();
    let table: [(Vec<u8>, Result<Addresses, HeaderError>); 11] = [
        (binary_header(0x21, 0x11, &four), Ok(addresses.clone())),
        (binary_header(0x20, 0x11, &four), Ok(Addresses::Local)),
        (binary_header(0x21, 0, &[]), Ok(Addresses::Unknown)),
        // An extension that nobody knows, and an empty one.
        (
            binary_header(0x21, 0x11, &with(&[0xee, 0, 1, 7, 4, 0, 0])),
            Ok(addresses),
        ),
        (binary_header(0x11, 0x11, &four), Err(HeaderError::Kind)),
        (binary_header(0x22, 0x11, &four), Err(HeaderError::Kind)),
        (binary_header(0x21, 0x41, &four), Err(HeaderError::Kind)),
        (binary_header(0x21, 0x13, &four), Err(HeaderError::Kind)),
        (binary_header(0x21, 0x21, &four), Err(HeaderError::Length)),
        (
            binary_header(0x21, 0x11, &with(&[1, 0, 5, 7])),
            Err(HeaderError::Length),
        ),
        (
            binary_header(0x21, 0x11, &with(&[2, 0, 1, 0xff])),
            Err(HeaderError::Text),
        ),
    ];
    for (bytes, expected) in table {
        let read = decode(&bytes).map(|read| read.expect("a whole one").0.addresses);
        assert_eq!(read, expected, "{bytes:?}");
    }
    let mut long = binary_header(0x21, 0x11, &four);
    long[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
    assert_eq!(decode(&long), Err(HeaderError::Length));
}

#[test]
fn a_header_of_another_program_is_read() {
    // Made by hand after the definition of pp2_tlv_ssl: TLSv1.3, a certificate of "me", verified.
    let tls = b"\x20\0\x14\x03\0\0\0\0\x21\0\x07TLSv1.3\x22\0\x02me";
    let rest = [&[127, 0, 0, 1, 127, 0, 0, 1, 0, 1, 0, 2], &tls[..]].concat();
    let (header, _) = decode(&binary_header(0x21, 0x11, &rest)).unwrap().unwrap();
    let expected = Tls {
        has_certificate: true,
        is_verified: true,
        version: Some("TLSv1.3".to_owned()),
        common_name: Some("me".to_owned()),
        ..Tls::default()
    };
    assert_eq!(header.extensions.tls, Some(expected));
}

/// Written by haproxy 2.6.12 with `send-proxy-v2-ssl-cn` and `cert-key,cert-sig,ssl-cipher`, for a client
/// with a certificate, and for the same one when it resumed its session.
#[test]
fn what_haproxy_says_of_clients_is_read() {
    let addresses = [127, 0, 0, 1, 127, 0, 0, 1, 0, 1, 0, 2];
    let rest = b"\x21\0\x07TLSv1.2\
                 \x22\0\x07billing\
                 \x25\0\x05EC256\
                 \x24\0\x11ecdsa-with-SHA256\
                 \x23\0\x1dECDHE-ECDSA-AES256-GCM-SHA384";
    for (client, has_certificate) in [(7, true), (5, false)] {
        let tls = [&[0x20, 0, 0x55, client, 0, 0, 0, 0], &rest[..]].concat();
        let whole = binary_header(0x21, 0x11, &[&addresses[..], &tls].concat());
        let (header, _) = decode(&whole).unwrap().unwrap();
        let expected = Tls {
            has_certificate,
            had_certificate: true,
            is_verified: true,
            version: Some("TLSv1.2".to_owned()),
            common_name: Some("billing".to_owned()),
            cipher: Some("ECDHE-ECDSA-AES256-GCM-SHA384".to_owned()),
            signature_algorithm: Some("ecdsa-with-SHA256".to_owned()),
            key_algorithm: Some("EC256".to_owned()),
        };
        assert_eq!(header.extensions.tls, Some(expected));
    }
}

/// What is said of clients (PROXY protocol, section 2.2.6), byte by byte.
#[test]
fn certificates_of_clients_have_their_bytes() {
    let shown = Tls {
        has_certificate: true,
        had_certificate: true,
        is_verified: true,
        version: Some("TLSv1.3".to_owned()),
        common_name: Some("zoë".to_owned()),
        cipher: Some("C".to_owned()),
        signature_algorithm: Some("ecdsa-with-SHA256".to_owned()),
        key_algorithm: Some("EC256".to_owned()),
    };
    let resumed = Tls {
        has_certificate: false,
        version: None,
        cipher: None,
        signature_algorithm: None,
        key_algorithm: None,
        ..shown.clone()
    };
    let table: [(Tls, &[u8]); 3] = [
        (
            shown,
            b"\x20\0\x36\x07\0\0\0\0\
              \x21\0\x07TLSv1.3\
              \x22\0\x04zo\xc3\xab\
              \x23\0\x01C\
              \x24\0\x11ecdsa-with-SHA256\
              \x25\0\x05EC256",
        ),
        // The certificate was shown when the session began.
        (resumed, b"\x20\0\x0c\x05\0\0\0\0\x22\0\x04zo\xc3\xab"),
        (Tls::default(), b"\x20\0\x05\x01\0\0\0\x01"),
    ];
    let addresses = [192, 0, 2, 1, 192, 0, 2, 2, 0x9c, 0x40, 1, 0xbb];
    for (tls, expected) in table {
        let header = Header {
            addresses: internet("192.0.2.1:40000", "192.0.2.2:443"),
            extensions: Extensions {
                tls: Some(tls),
                ..Extensions::default()
            },
        };
        let whole = binary_header(0x21, 0x11, &[&addresses, expected].concat());
        let mut bytes = Vec::new();
        encode_binary(&header, false, &mut bytes);
        assert_eq!(bytes, whole);
        assert_eq!(decode(&whole), Ok(Some((header, whole.len()))));
    }
}

#[test]
fn a_wrong_checksum_is_noticed() {
    let header = Header {
        addresses: internet("192.0.2.1:40000", "192.0.2.2:443"),
        extensions: Extensions {
            authority: Some("a.example".to_owned()),
            ..Extensions::default()
        },
    };
    let mut bytes = Vec::new();
    encode_binary(&header, true, &mut bytes);
    assert_eq!(decode(&bytes), Ok(Some((header, bytes.len()))));
    for at in FIXED..bytes.len() {
        let mut broken = bytes.clone();
        broken[at] ^= 1;
        let read = decode(&broken);
        // What breaks a length or makes another extension of the checksum is noticed by these.
        let is_noticed = read.is_err() || (CHECKSUM_HEAD..CHECKSUM_HEAD + 3).contains(&at);
        assert!(is_noticed, "{at}: {read:?}");
    }
    const FIXED: usize = 16;
    const CHECKSUM_HEAD: usize = FIXED + 12 + 3 + 9;
}

fn any_addresses() -> impl Strategy<Value = Addresses> {
    let path = || vec(1..=255_u8, 0..=108);
    prop_oneof![
        Just(Addresses::Local),
        Just(Addresses::Unknown),
        any::<([u8; 4], u16, [u8; 4], u16)>().prop_map(|(from, from_port, to, to_port)| {
            Addresses::Internet {
                source: (from, from_port).into(),
                destination: (to, to_port).into(),
            }
        }),
        any::<([u8; 16], u16, [u8; 16], u16)>().prop_map(|(from, from_port, to, to_port)| {
            Addresses::Internet {
                source: (from, from_port).into(),
                destination: (to, to_port).into(),
            }
        }),
        (path(), path()).prop_map(|(source, destination)| Addresses::Unix {
            source,
            destination
        }),
    ]
}

fn any_header() -> impl Strategy<Value = Header> {
    let tls = (
        any::<[bool; 3]>(),
        option::of("[ -~]{0,20}"),
        option::of("\\PC{0,20}"),
        option::of("[ -~]{0,20}"),
        option::of("[ -~]{0,20}"),
        option::of("[ -~]{0,20}"),
    );
    let tls = tls.prop_map(
        |(flags, version, common_name, cipher, signature, key)| Tls {
            has_certificate: flags[0],
            had_certificate: flags[1],
            is_verified: flags[2],
            version,
            common_name,
            cipher,
            signature_algorithm: signature,
            key_algorithm: key,
        },
    );
    let extensions = (
        option::of(vec(any::<u8>(), 0..20)),
        option::of("[a-z.]{0,40}"),
        option::of(vec(any::<u8>(), 0..=UNIQUE_ID_BYTES_MAX)),
        option::of(tls),
    );
    let extensions = extensions.prop_map(|(alpn, authority, unique_id, tls)| Extensions {
        alpn,
        authority,
        unique_id,
        tls,
    });
    (any_addresses(), extensions).prop_map(|(addresses, extensions)| Header {
        addresses,
        extensions,
    })
}

proptest! {
    #[test]
    fn what_is_encoded_is_read_from_any_beginning(
        header in any_header(),
        with_checksum: bool,
        after in vec(any::<u8>(), 0..40),
    ) {
        let mut bytes = Vec::new();
        encode_binary(&header, with_checksum, &mut bytes);
        let length = bytes.len();
        for end in 0..length {
            prop_assert_eq!(decode(&bytes[..end]), Ok(None));
        }
        bytes.extend(after);
        prop_assert_eq!(decode(&bytes), Ok(Some((header.clone(), length))));
        fuzz_proxy(&bytes);
    }

    #[test]
    fn nothing_panics(bytes in vec(any::<u8>(), 0..100), command in 0..=255_u8, family in 0..=255_u8) {
        fuzz_proxy(&bytes);
        fuzz_proxy(&binary_header(command, family, &bytes));
        fuzz_proxy(&binary_header(0x21, 0x11, &bytes));
    }
}
