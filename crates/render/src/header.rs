//! The header of a syslog message that a message begins with.
//!
//! A line whose content is made of fields, as that of an access log is, is its own message, so its header is part of
//! that. Where the host and the program stand before the message already, they are not shown twice.

use logpond_protocol::intake::syslog_header_bytes;

/// The message without its header, if the header says all of `said`, which is shown before it.
pub(super) fn behind<'m>(message: &'m [u8], said: &[&[u8]]) -> &'m [u8] {
    let Some(bytes) = syslog_header_bytes(message).filter(|_| !said.is_empty()) else {
        return message;
    };
    let (header, content) = message.split_at(bytes);
    let is_in = |text: &&[u8]| memchr::memmem::find(header, text).is_some();
    if said.iter().all(is_in) && !content.is_empty() {
        content
    } else {
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_left_out_where_it_is_shown() {
        let content = r#"203.0.113.7 - - [27/Nov/2026:03:00:02 +0000] "GET /x HTTP/1.1" 200 512"#;
        for header in [
            "<134>Nov 27 03:00:02 web-1 nginx: ",
            "<134>Nov 27 03:00:02 web-1 nginx[12]: ",
            "<134>1 2026-11-27T03:00:03Z web-1 nginx 12 - - ",
            "<134>1 2026-11-27T03:00:03Z web-1 nginx 12 - [a@1 b=\"c\"] ",
            "Nov 27 03:00:02 web-1 nginx: ",
        ] {
            let message = format!("{header}{content}");
            let left = |said: &[&[u8]]| behind(message.as_bytes(), said).to_vec();
            assert_eq!(left(&[b"web-1", b"nginx"]), content.as_bytes(), "{header}");
            assert_eq!(left(&[b"web-2"]), message.as_bytes());
            assert_eq!(left(&[]), message.as_bytes());
        }
        for message in ["<134>", "hello", content, "<b>web-1</b>"] {
            assert_eq!(behind(message.as_bytes(), &[b"web-1"]), message.as_bytes());
        }
    }
}
