//! Headers that vendors write instead of the RFCs', behind the priority: a row each.
//!
//! | what writes it | example |
//! | --- | --- |
//! | Cisco IOS, IOS XE, ASA, FTD, NX-OS | `29: foo: *Apr 29 13:58:40.411: %SYS-5-CONFIG_I: text` |
//! | Cisco IOS by its uptime | `238: 1w2d: %LINK-3-UPDOWN: text` |
//! | Cisco ASA with its name | `2018-06-27T12:17:46Z asa : %ASA-3-710003: text` |
//! | Cisco IOS XR | `1234: RP/0/RSP0/CPU0:Feb  3 10:01:02.123 UTC: ifmgr[200]: %PKT: text` |
//! | Cisco wireless controllers | `ap: *spamApTask1: Sep 06 14:12:05.153: %CAPWAP-3-ERR: text` |
//! | AIX, forwarded | `Jul 16 21:28:13 Message forwarded from aix66: sshd[679960]: text` |
//! | TrueNAS: RFC 5424 in RFC 3164 | `Jan  1 12:15:00 nas 1 1970-01-01T12:15:00Z nas cron 6 - - text` |
//! | Cisco Meraki | `1 1374543986.038687615 MX84 urls src=10.0.0.1` |
//! | Fortinet | `date=2020-01-01 time=12:00:00 devname="FG1" type="traffic"` |
//! | Sophos | `device_name="SFW" timestamp="2020-01-01T12:00:00+0000"` |
//! | MikroTik RouterOS | `system,info,account user admin logged in`, also behind a time and a name |
//! | Cisco Firepower | `2026-11-27T00:51:25Z ftd1  %FTD-1-430003: text` |
//! | WatchGuard | `Nov 27 00:51:25 fw1 80D3029F4FF2A (2026-11-27T00:51:25) firewall: msg_id="3000-0148" text` |
//! | HPE ProCurve | `Nov 27 00:51:25 192.0.2.3 00076 ports: port 24 is now on-line` |
//! | NetScaler, Citrix ADC, whose dates begin with the month | `03/02/2026:00:00:06 GMT adc 0-PPE-0 : default SSLVPN Message 7 0 :  text` |
//! | LEEF and CEF behind the start of an RFC 5424 header | `1 2026-03-02T00:00:06Z host LEEF:2.0\|…` |
//! | Relays that put a header before that of the sender | `Nov 27 00:51:25 relay <131>Nov 27 00:51:24 web1 app[77]: text` |
//! | The same with a header of RFC 5424 | `1 2026-11-27T00:51:25Z relay - - - - <131>Nov 27 00:51:24 web1 app[77]: text` |
//! | Cisco ISE | `Nov 27 00:51:25 ise1 CISE_Alarm 0000000077 1 0 2026-11-27 00:51:25.818 +01:00 0000001234 5200 NOTICE text` |
//! | iDRAC | `Nov 27 00:51:25 idrac1 Severity: Critical, Category: System Health, MessageID: PSU0003, Message: text` |
//! | SonicWall and others, blanks before pairs | `  id=firewall sn=…` |
//!
//! In files without a priority: what relays and Cisco ISE write, `journalctl -o short-full` and `short-unix`
//! (`Fri 2026-11-27 00:51:25 CET web1 app[77]: text`, `1795740685.818426 web1 app[77]: text`), Cisco with its name
//! (`foo: Apr 29 13:58:40.411 UTC: %SYS-5-CONFIG_I: text`), NetScaler, HPE Comware
//! (`%Mar  2 00:00:06:000 2026 sw1 SHELL/5/SHELL_LOGIN: text`).
//!
//! Fields: `app` has Cisco's mnemonic with its percent sign; `sequence` is the number of the line, or `sequence_sent`
//! where the device counts what it sends as well;
//! `clock_status` is `*` where its clock was never set and `.` where it lost its source; `uptime`
//! stands where there is no time; `node` is a card. What a relay put in front of a whole message is
//! `relay_time` and `relay_hostname`, and `relay_app`, `relay_procid` and `relay_msgid` if it says so.

use super::rule::Mark::{Begins, Within};
use super::rule::Part::{
    Ahead, Field, Maybe, Message, OneOf, OtherTime, Rfc5424, Tag, Text, Time, UnixTime,
};
use super::rule::{Class, Part, Rule};

const fn any(_: u8) -> bool {
    true
}

const fn is_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')
}

const fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
}

const fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

const fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

const fn is_clock_mark(byte: u8) -> bool {
    matches!(byte, b'*' | b'.')
}

const fn is_in_mnemonic(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b':'
}

const fn is_in_uptime(byte: u8) -> bool {
    matches!(
        byte,
        b'0'..=b'9' | b'y' | b'w' | b'd' | b'h' | b'm' | b's' | b':'
    )
}

const fn is_in_node(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'/'
}

const fn is_slash(byte: u8) -> bool {
    byte == b'/'
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_graphic()
}

const fn is_topic(byte: u8) -> bool {
    byte.is_ascii_lowercase() || matches!(byte, b',' | b'-' | b'!')
}

const fn is_in_category(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'-' | b'_' | b'/')
}

const fn is_comma(byte: u8) -> bool {
    byte == b','
}

const fn class(holds: fn(u8) -> bool, some: fn(u8) -> bool, bytes_max: usize) -> Class {
    Class {
        holds,
        first: None,
        some,
        bytes_max,
    }
}

const HOST: Part = Field("hostname:t", class(is_host, is_letter, 255));
const SEQUENCE: Part = Field("sequence:t", class(is_digit, any, 12));
const SEQUENCE_SENT: Part = Field("sequence_sent:t", class(is_digit, any, 12));
const CLOCK: Part = Maybe(&[Field("clock_status:t", class(is_clock_mark, any, 1))]);
const COLON: Part = Text(": ");
const SPACE: Part = Text(" ");
const SPACED_COLON: Part = OneOf(&[&[Text(" : ")], &[COLON]]);
const MNEMONIC: Part = Field(
    "app:t",
    Class {
        holds: is_in_mnemonic,
        first: Some(b'%'),
        some: any,
        bytes_max: 96,
    },
);
const UPTIME: Part = Field("uptime:t", class(is_in_uptime, is_digit, 32));

/// A time and a name of a host.
const HEADED: Part = OneOf(&[&[
    Time,
    SPACE,
    Field("hostname:t", class(is_host, any, 255)),
    SPACE,
]]);

/// The number of an event of ProCurve: five digits.
const EVENT_NUMBER: Class = Class {
    holds: is_digit,
    first: Some(b'0'),
    some: any,
    bytes_max: 5,
};

/// What Cisco's devices put before the time.
const CISCO_START: Part = OneOf(&[
    &[SEQUENCE, COLON, SEQUENCE_SENT, COLON, HOST, COLON],
    &[SEQUENCE, COLON, HOST, COLON],
    &[HOST, COLON, SEQUENCE, COLON],
    &[HOST, SPACE, SEQUENCE, COLON],
    &[SEQUENCE, COLON, SEQUENCE_SENT, COLON],
    &[SEQUENCE, COLON],
    &[HOST, COLON],
    &[COLON],
    &[Text(":")],
    &[],
]);

/// The topics that begin RouterOS's lists.
const ROUTER_TOPICS: &[&str] = &[
    "account,",
    "bfd,",
    "bgp,",
    "bridge,",
    "caps,",
    "certificate,",
    "dhcp,",
    "dns,",
    "dot1x,",
    "firewall,",
    "hotspot,",
    "igmp-proxy,",
    "interface,",
    "ipsec,",
    "isdn,",
    "l2tp,",
    "lte,",
    "manager,",
    "mpls,",
    "ntp,",
    "ospf,",
    "ovpn,",
    "pim,",
    "poe-out,",
    "ppp,",
    "pppoe,",
    "pptp,",
    "radius,",
    "radvd,",
    "rip,",
    "route,",
    "rsvp,",
    "script,",
    "sertcp,",
    "snmp,",
    "ssh,",
    "sstp,",
    "state,",
    "store,",
    "system,",
    "telephony,",
    "tftp,",
    "timer,",
    "ups,",
    "vrrp,",
    "watchdog,",
    "web-proxy,",
    "wireless,",
];

/// How far into a line its colon, and the mark behind it, are looked for.
const NAME_BYTES_MAX: usize = 64;
const MARK_BYTES_MAX: usize = 160;

/// The packet engine, which stands in the header of every message of NetScaler.
const ENGINE: &str = "-PPE-";

/// NetScaler's header.
const NETSCALER: &[Part] = &[
    Maybe(&[SPACE]),
    HEADED,
    Field("node:t", class(is_host, is_digit, 32)),
    Text(" : "),
    Message,
];

/// The message of a sender that a relay put a header before: with its priority or without.
const RELAYED_MESSAGE: Part = OneOf(&[
    &[
        Text("<"),
        Field("priority_sent:t", class(is_digit, any, 3)),
        Text(">"),
        Rfc5424,
    ],
    &[
        Text("<"),
        Field("priority_sent:t", class(is_digit, any, 3)),
        Text(">"),
        HEADED,
        Maybe(&[Tag]),
        Message,
    ],
    // A message may begin with a time, too.
    &[Ahead(MONTHS), HEADED, Tag, Message],
]);

/// A header of RFC 3164 before that of the sender.
const RELAYED: &[Part] = &[
    OtherTime("relay_time:t"),
    SPACE,
    Field("relay_hostname:t", class(is_word, any, 255)),
    SPACE,
    RELAYED_MESSAGE,
];

/// A header of RFC 5424 without structured data before that of the sender.
pub(super) const RELAYED_BY_5424: Rule = Rule {
    mark: Begins(&["1 "]),
    parts: &[
        Text("1 "),
        OtherTime("relay_time:t"),
        SPACE,
        Field("relay_hostname:t", class(is_word, any, 255)),
        SPACE,
        OneOf(&[
            &[Text("- ")],
            &[Field("relay_app:t", class(is_word, any, 48)), SPACE],
        ]),
        OneOf(&[
            &[Text("- ")],
            &[Field("relay_procid:t", class(is_word, any, 128)), SPACE],
        ]),
        OneOf(&[
            &[Text("- ")],
            &[Field("relay_msgid:t", class(is_word, any, 32)), SPACE],
        ]),
        Text("- "),
        RELAYED_MESSAGE,
    ],
};

/// True if a message begins as another one with a header: with a priority, or with a month and a day.
pub(super) fn is_message(text: &[u8]) -> bool {
    const PRIORITY_BYTES_MAX: usize = 5;
    match text {
        [b'<', b'0'..=b'9', ..] => text
            .iter()
            .take(PRIORITY_BYTES_MAX)
            .any(|byte| *byte == b'>'),
        [b'A'..=b'Z', ..] => is_day(text),
        _ => false,
    }
}

/// True for a month and a day.
fn is_day(text: &[u8]) -> bool {
    matches!(
        text,
        [
            b'A'..=b'Z',
            b'a'..=b'z',
            b'a'..=b'z',
            b' ',
            b' ' | b'0'..=b'3',
            b'0'..=b'9',
            b' ',
            ..
        ]
    )
}

/// The months with which a header begins.
const MONTHS: &[&str] = &[
    "Jan ", "Feb ", "Mar ", "Apr ", "May ", "Jun ", "Jul ", "Aug ", "Sep ", "Oct ", "Nov ", "Dec ",
];

/// Cisco ISE: the number of the message, its parts, and the part that this is. Its first part has a time with a zone.
const ISE: &[Part] = &[
    OtherTime("relay_time:t"),
    SPACE,
    Field("hostname:t", class(is_host, any, 255)),
    SPACE,
    Field("app:t", class(is_host, is_letter, 64)),
    SPACE,
    Field("message_number:t", class(is_digit, any, 12)),
    SPACE,
    Field("parts:t", class(is_digit, any, 4)),
    SPACE,
    Field("part:t", class(is_digit, any, 4)),
    SPACE,
    Time,
    SPACE,
    Field("sequence:t", class(is_digit, any, 12)),
    SPACE,
    Field("message_code:t", class(is_digit, any, 8)),
    SPACE,
    Field("level:t", class(is_letter, any, 10)),
    SPACE,
    Message,
];

/// A further part of its message, which has no time of its own.
const ISE_PART: &[Part] = &[
    HEADED,
    Field("app:t", class(is_host, is_letter, 64)),
    SPACE,
    Field("message_number:t", class(is_digit, any, 12)),
    SPACE,
    Field("parts:t", class(is_digit, any, 4)),
    SPACE,
    Field("part:t", class(is_digit, any, 4)),
    SPACE,
    Message,
];

/// The text that all messages of Cisco ISE have.
const ISE_MARK: &str = " CISE_";

/// The labels of iDRAC before its message.
const IDRAC: Part = OneOf(&[&[
    Text("Severity: "),
    Field("level:t", class(is_letter, any, 16)),
    Text(", Category: "),
    Field("category:t", class(is_in_category, any, 64)),
    Text(", MessageID: "),
    Field("message_id:t", class(is_alphanumeric, any, 16)),
    Text(", Message: "),
]]);

/// A dialect whose message begins with a label that reads as a tag.
pub(super) struct LabelledRule {
    pub(super) label: &'static str,
    pub(super) rule: Rule,
}

/// The dialects with a label.
pub(super) const LABELLED: &[LabelledRule] = &[LabelledRule {
    label: "Severity",
    rule: Rule {
        mark: Within(" Severity: "),
        parts: &[HEADED, IDRAC, Message],
    },
}];

/// Cisco's wireless controllers behind a header whose tag is their name.
pub(super) const CONTROLLER: LabelledRule = LabelledRule {
    label: "",
    rule: Rule {
        mark: Within(": *"),
        parts: &[
            OtherTime("relay_time:t"),
            SPACE,
            Maybe(&[Field("relay_hostname:t", class(is_word, any, 255)), SPACE]),
            HOST,
            COLON,
            Text("*"),
            Field("task:t", class(is_host, is_letter, 64)),
            COLON,
            CLOCK,
            Time,
            COLON,
            Maybe(&[MNEMONIC, COLON]),
            Message,
        ],
    },
};

const WEEKDAY: Part = OneOf(&[
    &[Text("Mon ")],
    &[Text("Tue ")],
    &[Text("Wed ")],
    &[Text("Thu ")],
    &[Text("Fri ")],
    &[Text("Sat ")],
    &[Text("Sun ")],
]);

/// True for a line that a header of a relay begins, behind which that of the sender stands: a month and a day, or a
/// priority.
fn is_relayed(line: &[u8]) -> bool {
    const TIME_BYTES: usize = 16;
    let behind = line.get(TIME_BYTES..).filter(|_| is_day(line));
    let behind = behind.unwrap_or_default();
    let blank = memchr::memchr(b' ', &behind[..behind.len().min(NAME_BYTES_MAX)]);
    blank.is_some_and(|blank| {
        let rest = &behind[blank + 1..];
        is_day(rest)
            || matches!(rest, [b'<', b'0'..=b'9', ..]) && memchr::memchr(b'>', rest).is_some()
    })
}

/// Formats whose messages have no header.
const BODIES: &[&str] = &["id=firewall ", "CEF:", "LEEF:"];

/// True if a text is a message of a format that has no header.
pub(super) fn is_body(text: &[u8]) -> bool {
    let mut starts = BODIES.iter();
    starts.any(|start| text.starts_with(start.as_bytes()))
}

/// The bytes of the topics that a text begins with, if they are RouterOS's.
pub(super) fn topics_bytes(text: &[u8]) -> Option<usize> {
    let length = text.iter().take_while(|byte| is_topic(**byte)).count();
    let mut known = ROUTER_TOPICS.iter();
    let is_it =
        text[length..].starts_with(b" ") && known.any(|topic| text.starts_with(topic.as_bytes()));
    is_it.then_some(length)
}

/// A message of a format that has no header.
pub(super) const BARE: Rule = Rule {
    mark: Begins(BODIES),
    parts: &[Message],
};

/// True for a line without a priority that one of [`ALONE`] may fit.
pub(super) fn is_alone(line: &[u8]) -> bool {
    let has = |mark: &str| {
        let head = &line[..line.len().min(MARK_BYTES_MAX)];
        memchr::memmem::find(head, mark.as_bytes()).is_some()
    };
    match line {
        [b'%', b'A'..=b'Z', _, _, b' ', ..] => true,
        // `journalctl -o short-full` and `-o short-unix`.
        [
            b'A'..=b'Z',
            b'a'..=b'z',
            b'a'..=b'z',
            b' ',
            b'2',
            b'0',
            _,
            _,
            b'-',
            _,
            _,
            b'-',
            ..,
        ] => true,
        [b'1', ..] if line.get(10) == Some(&b'.') && line.get(17) == Some(&b' ') => {
            line[11..17].iter().all(u8::is_ascii_digit)
        }
        _ if is_relayed(line) => true,
        [b'A'..=b'Z', ..] if line.get(15) == Some(&b' ') && has(ISE_MARK) => true,
        // Cisco ASA.
        [
            b'A'..=b'Z',
            _,
            _,
            b' ',
            b' ' | b'0'..=b'3',
            b'0'..=b'9',
            b' ',
            ..,
        ] if has(": %") => true,
        // A time, facility and severity of a relay.
        _ if line.get(16) == Some(&b'<') && line[0].is_ascii_uppercase() => has(ENGINE),
        [b'0'..=b'9', _, _, _, b'-', _, _, b'-', _, _, b'T', ..] if has(" : %") => true,
        [b'0'..=b'9', _, b'/', _, _, b'/', _, _, _, _, b':', ..] => has(ENGINE),
        [b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z', ..] => {
            let colon = memchr::memchr(b':', &line[..line.len().min(NAME_BYTES_MAX)]);
            colon.is_some_and(|colon| line.get(colon + 1) == Some(&b' ')) && has(": %")
        }
        _ => false,
    }
}

/// The dialects of lines without a priority.
pub(super) const ALONE: &[Rule] = &[
    Rule {
        mark: Within(ISE_MARK),
        parts: ISE,
    },
    Rule {
        mark: Within(ISE_MARK),
        parts: ISE_PART,
    },
    Rule {
        mark: Within(":"),
        parts: &[WEEKDAY, Time, SPACE, HOST, SPACE, Tag, Message],
    },
    Rule {
        mark: Begins(&["1"]),
        parts: &[UnixTime, SPACE, HOST, SPACE, Tag, Message],
    },
    Rule {
        mark: Within(": %"),
        parts: &[
            CISCO_START,
            CLOCK,
            Time,
            SPACED_COLON,
            MNEMONIC,
            COLON,
            Message,
        ],
    },
    Rule {
        mark: Within(": %"),
        parts: &[
            OtherTime("relay_time:t"),
            SPACE,
            Field("hostname:t", class(is_host, any, 255)),
            SPACE,
            SEQUENCE,
            COLON,
            CLOCK,
            Time,
            SPACED_COLON,
            MNEMONIC,
            COLON,
            Message,
        ],
    },
    Rule {
        mark: Within(" : %"),
        parts: &[Time, SPACE, HOST, SPACED_COLON, MNEMONIC, COLON, Message],
    },
    Rule {
        mark: Begins(&["%"]),
        parts: &[
            Text("%"),
            Time,
            SPACE,
            HOST,
            SPACE,
            Field("app:t", class(is_in_mnemonic, is_slash, 96)),
            COLON,
            Message,
        ],
    },
    Rule {
        mark: Within(ENGINE),
        parts: NETSCALER,
    },
    Rule {
        mark: Within(ENGINE),
        parts: &[
            OtherTime("relay_time:t"),
            Text(" <"),
            Field("facility_name:t", class(is_alphanumeric, any, 10)),
            Text("."),
            Field("level:t", class(is_letter, any, 10)),
            Text("> "),
            Field("relay_hostname:t", class(is_word, any, 255)),
            SPACE,
            HEADED,
            Field("node:t", class(is_host, is_digit, 32)),
            Text(" : "),
            Message,
        ],
    },
    Rule {
        mark: Within(":"),
        parts: RELAYED,
    },
];

/// The dialects; the first that fits counts.
pub(super) const RULES: &[Rule] = &[
    Rule {
        mark: Within(ISE_MARK),
        parts: ISE,
    },
    Rule {
        mark: Within(ISE_MARK),
        parts: ISE_PART,
    },
    Rule {
        mark: Within(", Severity: "),
        parts: &[
            OtherTime("relay_time:t"),
            SPACE,
            Field("hostname:t", class(is_host, any, 255)),
            SPACE,
            Time,
            Text(", "),
            Field("device:t", class(is_host, any, 255)),
            Text(", "),
            IDRAC,
            Message,
        ],
    },
    Rule {
        mark: Within(ENGINE),
        parts: NETSCALER,
    },
    Rule {
        mark: Begins(&["1 "]),
        parts: &[Text("1 "), HEADED, Ahead(BODIES), Message],
    },
    BARE,
    Rule {
        mark: Within(": %"),
        parts: &[
            CISCO_START,
            CLOCK,
            Time,
            SPACED_COLON,
            MNEMONIC,
            COLON,
            Message,
        ],
    },
    Rule {
        mark: Within(": %"),
        parts: &[
            Maybe(&[SEQUENCE, COLON]),
            UPTIME,
            COLON,
            MNEMONIC,
            COLON,
            Message,
        ],
    },
    Rule {
        mark: Within(": %"),
        parts: &[Time, SPACE, HOST, SPACED_COLON, MNEMONIC, COLON, Message],
    },
    Rule {
        mark: Within("CPU"),
        parts: &[
            Maybe(&[SEQUENCE, COLON]),
            Maybe(&[HOST, COLON]),
            Field("node:t", class(is_in_node, is_slash, 64)),
            Text(":"),
            CLOCK,
            Time,
            COLON,
            Tag,
            Message,
        ],
    },
    Rule {
        mark: Within("*"),
        parts: &[
            Maybe(&[HOST, COLON]),
            Text("*"),
            Field("task:t", class(is_host, is_letter, 64)),
            COLON,
            CLOCK,
            Time,
            COLON,
            Maybe(&[MNEMONIC, COLON]),
            Message,
        ],
    },
    Rule {
        mark: Within(" Message forwarded from "),
        parts: &[
            Time,
            Text(" Message forwarded from "),
            HOST,
            COLON,
            Maybe(&[Tag]),
            Message,
        ],
    },
    Rule {
        mark: Within(" 1 "),
        parts: &[
            OtherTime("relay_time:t"),
            SPACE,
            Field("relay_hostname:t", class(is_word, any, 255)),
            SPACE,
            Rfc5424,
        ],
    },
    Rule {
        mark: Begins(&["1 "]),
        parts: &[
            Text("1 "),
            UnixTime,
            SPACE,
            HOST,
            SPACE,
            Field("app:t", class(is_word, any, 64)),
            SPACE,
            Message,
        ],
    },
    Rule {
        mark: Begins(&["date="]),
        parts: &[
            Text("date="),
            Time,
            SPACE,
            Maybe(&[Text("devname=\""), HOST, Text("\" ")]),
            Maybe(&[Text("devname="), HOST, SPACE]),
            Message,
        ],
    },
    Rule {
        mark: Begins(&["device_name=\"", "device=\""]),
        parts: &[Message],
    },
    Rule {
        mark: Within("  %"),
        parts: &[
            Time,
            SPACE,
            Field("hostname:t", class(is_host, any, 255)),
            Text("  "),
            MNEMONIC,
            COLON,
            Message,
        ],
    },
    Rule {
        mark: Within("msg_id="),
        parts: &[
            HEADED,
            Field("serial:t", class(is_alphanumeric, is_digit, 32)),
            SPACE,
            Maybe(&[Text("("), OtherTime("device_time:t"), Text(") ")]),
            Tag,
            Message,
        ],
    },
    Rule {
        mark: Within(" 0"),
        parts: &[
            HEADED,
            Field("event_id:t", EVENT_NUMBER),
            SPACE,
            Tag,
            Message,
        ],
    },
    Rule {
        mark: Begins(ROUTER_TOPICS),
        parts: &[
            Field("app:t", class(is_topic, is_comma, 64)),
            SPACE,
            Message,
        ],
    },
    Rule {
        mark: Within(":"),
        parts: RELAYED,
    },
];
