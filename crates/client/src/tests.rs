use super::*;

fn answer(text: &'static str) -> Answer {
    Answer::new(Box::new(text.as_bytes()))
}

#[test]
fn addresses() {
    let table = [
        ("http://127.0.0.1:1", "http://127.0.0.1:1"),
        ("http://web-1/logs/", "http://web-1:7650/logs"),
        ("https://web-1", "https://web-1:7650"),
        ("web-1:80", "http://web-1:80"),
        (":80", "http://127.0.0.1:80"),
        ("[::1]", "http://[::1]:7650"),
        ("[::1]:9", "http://[::1]:9"),
    ];
    for (text, want) in table {
        assert_eq!(Address::parse(text).unwrap().to_string(), want);
    }
    for text in ["", "https://", "ftp://a", "a b", "http://", "a?b=1"] {
        assert!(Address::parse(text).is_err(), "{text}");
    }
    let url = Address::parse(":1")
        .unwrap()
        .url("/p", &vec![("q", "a b&\"ä".into()), ("n", "1".into())]);
    assert_eq!(url, "http://127.0.0.1:1/p?q=a%20b%26%22%C3%A4&n=1");
}

#[test]
fn an_answer_is_rows_and_a_trailer() {
    let mut answer = answer(
        "{\"_time\":\"t\"}\n{\"_gap\":true}\n\n{\"_progress\":{\"bytes\":5,\"x\":1}}\n{\"a\":1}\n\
         {\"_trailer\":{\"rows\":2,\"complete\":true,\"elapsed_ms\":1}}\n",
    );
    assert!(matches!(
        answer.next_item(),
        Ok(Item::Row(b"{\"_time\":\"t\"}"))
    ));
    assert!(answer.is_more_at_hand());
    assert!(matches!(answer.next_item(), Ok(Item::Gap)));
    assert!(matches!(
        answer.next_item(),
        Ok(Item::Progress(Progress { bytes: 5, .. }))
    ));
    assert!(matches!(answer.next_item(), Ok(Item::Row(b"{\"a\":1}"))));
    assert!(matches!(
        answer.next_item(),
        Ok(Item::Trailer(Trailer {
            rows: 2,
            complete: true,
            ..
        }))
    ));
    assert!(!answer.is_more_at_hand());
    assert!(matches!(answer.next_item(), Err(ClientError::Broken(None))));
}

#[test]
fn what_breaks_off_is_no_answer() {
    for text in ["", "{\"a\":1}", "{\"_trailer\":{\"rows\":1}"] {
        assert!(
            matches!(answer(text).next_item(), Err(ClientError::Broken(None))),
            "{text}"
        );
    }
    let nonsense = answer("{\"_trailer\":7}\n").next_item().unwrap_err();
    assert!(matches!(nonsense, ClientError::Nonsense(_)));
}

#[test]
fn refusals() {
    let body = br#"{"error":{"code":"query.syntax","message":"unclosed quote","start":3,"end":5,"hint":"close it"}}"#;
    let error = ClientError::refused(400, body);
    assert_eq!(error.to_string(), "unclosed quote; close it");
    assert!(matches!(
        error,
        ClientError::Refused {
            span: Some((3, 5)),
            ..
        }
    ));
    assert_eq!(
        ClientError::refused(502, b"bad gateway\n").to_string(),
        "bad gateway"
    );
    assert_eq!(
        ClientError::refused(502, b"").to_string(),
        "the server answered with status 502"
    );
}
