//! Scales of the levels of documents: how the value of a field is one.

use logpond_record::Severity;

/// How the value of a level field is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// As that of `level`.
    Usual,
    Syslog,
    ApplicationInsights,
    Windows,
    Glog,
    /// Findings of AWS and events of CEF and LEEF: a word, or a number of which those from 4, 7 and 9 on are medium, high
    /// and critical.
    Finding,
    /// A verbosity of klog: more than 3 are for debugging.
    Verbosity,
    /// A list of texts, one of which is a word for a level.
    Tags,
    /// A word, and no number: numbers of that name have another scale in each product.
    Word,
    /// Nextcloud's and ownCloud's numbers, from 0 for debugging to 4 for what is fatal.
    Nextcloud,
    /// Numbers of consola, from 0 for errors to 5 for traces.
    Consola,
    /// Lager's numbers, from 0 for debugging to 3 for what is fatal, or a word.
    Lager,
    /// A word with the colours of a terminal around it.
    Coloured,
}

impl Scale {
    /// The severity of a text.
    pub(crate) fn severity(self, text: &[u8]) -> Option<Severity> {
        let number = || std::str::from_utf8(text).ok()?.trim().parse::<u32>().ok();
        match self {
            Scale::Usual => Severity::of_field("level", text),
            Scale::Syslog => Severity::of_syslog(u8::try_from(number()?).ok()?),
            Scale::ApplicationInsights => match number() {
                Some(number) => Severity::of_application_insights(number),
                None => Severity::of_word(text),
            },
            Scale::Windows => match number() {
                Some(number) => Severity::of_windows(number),
                None => Severity::of_word(text),
            },
            Scale::Glog => match number() {
                Some(number) => Severity::of_glog(number),
                None => Severity::of_word(text),
            },
            Scale::Finding => of_finding(text),
            Scale::Verbosity => Some(match number()? {
                0..=3 => Severity::Info,
                4..=5 => Severity::Debug,
                _ => Severity::Trace,
            }),
            Scale::Word => Severity::of_word(text),
            Scale::Nextcloud => of_row(&NEXTCLOUD, number()?),
            Scale::Consola => of_row(&CONSOLA, number()?),
            Scale::Lager => match number() {
                Some(number) => of_row(&LAGER, number),
                None => Severity::of_word(text),
            },
            Scale::Coloured => Severity::of_word(without_colours(text)?),
            Scale::Tags => {
                let words = text.split(|byte| *byte == b'"').skip(1).step_by(2);
                let mut levels = words.filter(|word| word.len() >= TAG_BYTES_MIN);
                levels.find_map(Severity::of_word)
            }
        }
    }
}

/// Nextcloud's levels by their numbers.
const NEXTCLOUD: [Severity; 5] = [
    Severity::Debug,
    Severity::Info,
    Severity::Warn,
    Severity::Error,
    Severity::Fatal,
];

/// Levels of consola by their numbers.
const CONSOLA: [Severity; 6] = [
    Severity::Error,
    Severity::Warn,
    Severity::Info,
    Severity::Info,
    Severity::Debug,
    Severity::Trace,
];

/// Levels of lager by their numbers.
const LAGER: [Severity; 4] = [
    Severity::Debug,
    Severity::Info,
    Severity::Error,
    Severity::Fatal,
];

fn of_row(row: &[Severity], number: u32) -> Option<Severity> {
    row.get(usize::try_from(number).ok()?).copied()
}

/// The text between the sequences of a terminal at both of its ends; `None` if it begins with none.
fn without_colours(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    for _ in 0..COLOURS_MAX {
        let Some(inside) = rest.strip_prefix(b"\x1b[") else {
            break;
        };
        rest = &inside[inside.iter().position(u8::is_ascii_alphabetic)? + 1..];
    }
    if rest.len() == text.len() {
        return None;
    }
    let end = memchr::memchr(0x1b, rest).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// The most sequences of a terminal before a word.
const COLOURS_MAX: usize = 4;

/// The least bytes of a tag that is a level: letters and `log` are none.
const TAG_BYTES_MIN: usize = 4;

/// The severity of a finding.
fn of_finding(text: &[u8]) -> Option<Severity> {
    let text = std::str::from_utf8(text).ok()?;
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| number.is_finite());
    if let Some(number) = number {
        return Some(match number {
            9.0.. => Severity::Critical,
            7.0.. => Severity::Error,
            4.0.. => Severity::Warn,
            _ => Severity::Notice,
        });
    }
    const WORDS: [(&str, Severity); 7] = [
        ("INFORMATIONAL", Severity::Info),
        ("LOW", Severity::Notice),
        ("MEDIUM", Severity::Warn),
        ("HIGH", Severity::Error),
        ("VERY-HIGH", Severity::Critical),
        ("VERY HIGH", Severity::Critical),
        ("CRITICAL", Severity::Critical),
    ];
    let is_it = |(word, _): &&(&str, Severity)| word.eq_ignore_ascii_case(text);
    WORDS.iter().find(is_it).map(|(_, severity)| *severity)
}
