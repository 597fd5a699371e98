//! Severity: one scale for what all sources say about how bad a record is.
//!
//! | severity | OpenTelemetry | syslog | pino, Bunyan | Monolog | Python |
//! | --- | --- | --- | --- | --- | --- |
//! | trace | 1–4 | | 10 | | below 10 |
//! | debug | 5–8 | 7 | 20 | 100 | 10 |
//! | info | 9, 11, 12 | 6 | 30 | 200 | 20 |
//! | notice | 10 | 5 | | 250 | |
//! | warn | 13–16 | 4 | 40 | 300 | 30 |
//! | error | 17, 19, 20 | 3 | 50 | 400 | 40 |
//! | critical | 18 | 2 | | 500 | 50 |
//! | alert | | 1 | | 550 | |
//! | fatal | 21–24 | 0 | 60 | 600 | |
//!
//! Sources: RFC 5424 section 6.2.1, OpenTelemetry's log data model, and the documentation of the named
//! libraries. OpenTelemetry maps syslog's notice to 10 and critical to 18.

/// How bad it is what a record tells, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Steps of a program.
    Trace,
    /// For its developers.
    Debug,
    /// Normal operation.
    Info,
    /// Normal but significant.
    Notice,
    /// May become an error.
    Warn,
    /// An operation failed.
    Error,
    /// A component failed.
    Critical,
    /// Action must be taken at once.
    Alert,
    /// The program or system cannot go on.
    Fatal,
}

/// The largest number of a logger's scale: Monolog's emergency.
const LOGGER_NUMBER_MAX: u32 = 600;

/// The most bytes of a word for a severity.
const WORD_BYTES_MAX: usize = 13;

/// A severity, its name, its syslog number, its OpenTelemetry number, and the other words for it in lower
/// case: of syslog, the common loggers, PostgreSQL, systemd, Windows and the letters of klog and Android.
type Row = (Severity, &'static str, u8, u8, &'static [&'static str]);

const ROWS: [Row; 9] = [
    (
        Severity::Trace,
        "trace",
        7,
        1,
        &["trc", "verbose", "vrb", "finest", "finer", "t", "v"],
    ),
    (
        Severity::Debug,
        "debug",
        7,
        5,
        &[
            "dbg", "fine", "config", "d", "debug1", "debug2", "debug3", "debug4", "debug5",
        ],
    ),
    (
        Severity::Info,
        "info",
        6,
        9,
        &["inf", "information", "informational", "log", "success", "i"],
    ),
    (Severity::Notice, "notice", 5, 10, &["ntc"]),
    (Severity::Warn, "warn", 4, 13, &["warning", "wrn", "w"]),
    (
        Severity::Error,
        "error",
        3,
        17,
        &["err", "eror", "severe", "e"],
    ),
    (
        Severity::Critical,
        "critical",
        2,
        18,
        &["crit", "dpanic", "fault", "c"],
    ),
    (Severity::Alert, "alert", 1, 19, &["alrt"]),
    (
        Severity::Fatal,
        "fatal",
        0,
        21,
        &["ftl", "panic", "pnc", "emerg", "emergency", "f"],
    ),
];

impl Severity {
    /// All, the least first.
    pub fn all() -> impl Iterator<Item = Severity> {
        ROWS.iter().map(|row| row.0)
    }

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Its name, as it is shown and asked for.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Its number in syslog: 7 for debug and trace, 0 for fatal.
    pub fn syslog(self) -> u8 {
        self.row().2
    }

    /// Its number in OpenTelemetry, 1 to 24.
    pub fn number(self) -> u8 {
        self.row().3
    }

    /// The severity of a number in syslog.
    pub fn of_syslog(number: u8) -> Option<Severity> {
        // Trace has debug's number.
        ROWS.iter()
            .rev()
            .find(|row| row.2 == number)
            .map(|row| row.0)
    }

    /// The severity that a word means, in any case, with blanks around it.
    pub fn of_word(word: &[u8]) -> Option<Severity> {
        let word = word.trim_ascii();
        let mut lower = [0; WORD_BYTES_MAX];
        let lower = lower.get_mut(..word.len())?;
        lower.copy_from_slice(word);
        lower.make_ascii_lowercase();
        let is_it = |row: &&Row| {
            row.1.as_bytes() == lower || row.4.iter().any(|word| word.as_bytes() == lower)
        };
        ROWS.iter().find(is_it).map(|row| row.0)
    }

    /// All texts that mean a severity in a field without a scale of its own, in lower case.
    pub fn texts() -> impl Iterator<Item = (Severity, String)> {
        let words = ROWS.iter().flat_map(|row| {
            let words = std::iter::once(row.1).chain(row.4.iter().copied());
            words.map(|word| (row.0, word.to_owned()))
        });
        let numbers = (0..=LOGGER_NUMBER_MAX)
            .filter_map(|number| Some((Severity::of_logger(number)?, number.to_string())));
        words.chain(numbers)
    }

    /// The severity that a field's text means: a word, or a number on the scale that the field's name tells.
    pub fn of_field(name: &str, text: &[u8]) -> Option<Severity> {
        if let Some(known) = Severity::of_word(text) {
            return Some(known);
        }
        let number = whole_number(std::str::from_utf8(text).ok()?.trim())
            .parse()
            .ok()?;
        match name {
            "levelno" => Severity::of_python(number),
            "severity_number" | "severityNumber" | "SeverityNumber" => {
                Severity::of_opentelemetry(number)
            }
            _ => Severity::of_logger(number),
        }
    }

    /// Scales that do not overlap: syslog's 0 to 7, the tens of pino and Bunyan, the hundreds of Monolog.
    fn of_logger(number: u32) -> Option<Severity> {
        Some(match number {
            0..=7 => return Severity::of_syslog(number as u8),
            10..20 => Severity::Trace,
            20..30 => Severity::Debug,
            30..40 => Severity::Info,
            40..50 => Severity::Warn,
            50..60 => Severity::Error,
            60..70 => Severity::Fatal,
            100 => Severity::Debug,
            200 => Severity::Info,
            250 => Severity::Notice,
            300 => Severity::Warn,
            400 => Severity::Error,
            500 => Severity::Critical,
            550 => Severity::Alert,
            LOGGER_NUMBER_MAX => Severity::Fatal,
            _ => return None,
        })
    }

    fn of_python(number: u32) -> Option<Severity> {
        Some(match number {
            0 => return None,
            1..10 => Severity::Trace,
            10..20 => Severity::Debug,
            20..30 => Severity::Info,
            30..40 => Severity::Warn,
            40..50 => Severity::Error,
            50..=100 => Severity::Critical,
            _ => return None,
        })
    }

    fn of_opentelemetry(number: u32) -> Option<Severity> {
        Some(match number {
            1..=4 => Severity::Trace,
            5..=8 => Severity::Debug,
            10 => Severity::Notice,
            9..=12 => Severity::Info,
            13..=16 => Severity::Warn,
            18 => Severity::Critical,
            17..=20 => Severity::Error,
            21..=24 => Severity::Fatal,
            _ => return None,
        })
    }
}

/// A number without a fraction that is zero: `30.0` is 30.
fn whole_number(text: &str) -> &str {
    match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() && fraction.bytes().all(|b| b == b'0') => {
            whole
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_words_unique() {
        let mut words = Vec::new();
        for (at, row) in ROWS.iter().enumerate() {
            assert_eq!(row.0 as usize, at);
            assert_eq!(Severity::of_word(row.1.as_bytes()), Some(row.0));
            words.push(row.1);
            words.extend(row.4);
        }
        assert!(Severity::all().is_sorted());
        assert!(words.iter().all(|word| word.len() <= WORD_BYTES_MAX));
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
    }

    #[test]
    fn listed_texts_mean_what_they_are_listed_for() {
        for (severity, text) in Severity::texts() {
            let found = Severity::of_field("level", text.as_bytes());
            assert_eq!(found, Some(severity), "{text}");
        }
        assert!(Severity::texts().count() > 100);
    }

    #[test]
    fn texts_mean_severities() {
        let table = [
            ("level", "WARNING", Some(Severity::Warn)),
            ("level", " Err ", Some(Severity::Error)),
            ("level", "6", Some(Severity::Info)),
            ("level", "7", Some(Severity::Debug)),
            ("level", "0", Some(Severity::Fatal)),
            ("level", "30", Some(Severity::Info)),
            ("level", "60", Some(Severity::Fatal)),
            ("level", "550", Some(Severity::Alert)),
            ("level", "37", Some(Severity::Info)),
            ("level", "30.0", Some(Severity::Info)),
            ("levelno", " 30.00 ", Some(Severity::Warn)),
            ("level", "30.5", None),
            ("level", "30.", None),
            ("level", ".0", None),
            ("level", "99", None),
            ("level", "-1", None),
            ("level", "", None),
            ("level", "quite bad", None),
            ("level", "informationals", None),
            ("levelno", "30", Some(Severity::Warn)),
            ("levelno", "0", None),
            ("severity_number", "18", Some(Severity::Critical)),
            ("SeverityNumber", "9", Some(Severity::Info)),
            ("severity", "EMERGENCY", Some(Severity::Fatal)),
            ("error_severity", "LOG", Some(Severity::Info)),
        ];
        for (name, text, expected) in table {
            assert_eq!(
                Severity::of_field(name, text.as_bytes()),
                expected,
                "{name}={text}"
            );
        }
    }
}
