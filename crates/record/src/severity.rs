//! Severity: one scale for what all sources say about how bad a record is.
//!
//! | severity | OpenTelemetry | syslog | pino, Bunyan | Monolog | Python | Google | .NET | log4j, Java |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | trace | 1–4 | | 10 | | below 10 | | 0 | 5000 |
//! | debug | 5–8 | 7 | 20 | 100 | 10 | 100 | 1 | 10000, 700 |
//! | info | 9, 11, 12 | 6 | 30 | 200 | 20 | 200 | 2 | 20000, 800 |
//! | notice | 10 | 5 | | 250 | | 300 | | |
//! | warn | 13–16 | 4 | 40 | 300 | 30 | 400 | 3 | 30000, 900 |
//! | error | 17, 19, 20 | 3 | 50 | 400 | 40 | 500 | 4 | 40000, 1000 |
//! | critical | 18 | 2 | | 500 | 50 | 600 | 5 | |
//! | alert | | 1 | | 550 | | 700 | | |
//! | fatal | 21–24 | 0 | 60 | 600 | | 800 | | 50000 |
//!
//! A field's name tells the scale where scales overlap: `levelno` is Python's, `LogLevel` is .NET's, hundreds in
//! `severity` are Google's. Sources: RFC 5424 section 6.2.1, OpenTelemetry's log data model, LogSeverity of
//! Google's Cloud Logging, and the documentation of the named libraries. OpenTelemetry maps syslog's notice to 10
//! and critical to 18.

use crate::cast;

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

/// The fields whose text is a record's severity, as labels, the first one that is there counts; Grafana's
/// tools know the first ones.
pub const SEVERITY_LABELS: [&str; 28] = [
    "detected_level",
    "level",
    "LEVEL",
    "Level",
    "log_level",
    "severity",
    "SEVERITY",
    "Severity",
    "SeverityText",
    "lvl",
    "LVL",
    "Lvl",
    "severity_text",
    "levelname",
    "loglevel",
    "LOG_LEVEL",
    // `@l` of Serilog, `@level` of hclog, `level_name` of Monolog, `LogLevel` of .NET.
    "_l",
    "_level",
    "level_name",
    "LogLevel",
    "logLevel",
    // PostgreSQL's JSON.
    "error_severity",
    "PRIORITY",
    "severity_number",
    "SeverityNumber",
    "severityNumber",
    // Numbers of Python's logging.
    "levelno",
    "priority",
];

/// The largest number of a logger's scale: log4j's fatal.
const LOGGER_NUMBER_MAX: u32 = 50_000;

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
        &[
            "trc", "trce", "trac", "verbose", "vrb", "finest", "finer", "silly", "t", "v",
        ],
    ),
    (
        Severity::Debug,
        "debug",
        7,
        5,
        &[
            "dbg", "dbug", "debu", "fine", "config", "d", "debug1", "debug2", "debug3", "debug4",
            "debug5", "d1", "d2", "d3", "d4", "d5",
        ],
    ),
    (
        Severity::Info,
        "info",
        6,
        9,
        &[
            "inf",
            "information",
            "informational",
            "log",
            "note",
            "success",
            // npm's level between information and verbose.
            "http",
            "i",
        ],
    ),
    (Severity::Notice, "notice", 5, 10, &["ntc", "noti", "audit"]),
    (Severity::Warn, "warn", 4, 13, &["warning", "wrn", "w"]),
    (
        Severity::Error,
        "error",
        3,
        17,
        &["err", "eror", "erro", "fail", "severe", "e"],
    ),
    (
        Severity::Critical,
        "critical",
        2,
        18,
        &["crit", "crt", "dpanic", "fault", "shout", "c"],
    ),
    (Severity::Alert, "alert", 1, 19, &["alrt"]),
    (
        Severity::Fatal,
        "fatal",
        0,
        21,
        &[
            "ftl",
            "fata",
            "panic",
            "pani",
            "pnc",
            "emerg",
            "emergency",
            "f",
        ],
    ),
];

/// The most bytes of a word of [`TRANSLATIONS`].
const TRANSLATION_BYTES_MAX: usize = 36;

/// Words for severities in other languages, in lower case: as Windows names the levels of its events, and
/// java.util.logging its own. None is a word of [`ROWS`].
const TRANSLATIONS: [(Severity, &[&str]); 7] = [
    (
        Severity::Trace,
        &[
            // German, French, Spanish, Portuguese, Italian, Dutch.
            "ausführlich",
            "feiner",
            "am feinsten",
            "commentaires",
            "détails",
            "detallado",
            "detalhado",
            "dettagliato",
            "uitgebreid",
            // Polish, Russian, Chinese, Japanese.
            "pełne",
            "подробности",
            "подробно",
            "详细",
            "詳細",
        ],
    ),
    (
        Severity::Debug,
        &[
            "fein",
            "konfiguration",
            "précis",
            "configurar",
            "отладка",
            "调试",
            "デバッグ",
            "디버그",
        ],
    ),
    (
        Severity::Info,
        &[
            "informationen",
            "infos",
            "información",
            "informacion",
            "informação",
            "informações",
            "informacao",
            "informacoes",
            "informazione",
            "informazioni",
            "informatie",
            "informacja",
            "informacje",
            "informace",
            "bilgi",
            "сведения",
            "информация",
            "инфо",
            "信息",
            "資訊",
            "情報",
            "정보",
        ],
    ),
    (
        Severity::Notice,
        &["hinweis", "avis", "mededeling", "уведомление", "通知"],
    ),
    (
        Severity::Warn,
        &[
            "warnung",
            "avertissement",
            "advertencia",
            "advertência",
            "aviso",
            "avviso",
            "avvertenza",
            "avvertimento",
            "attenzione",
            "waarschuwing",
            "ostrzeżenie",
            "varning",
            "advarsel",
            "upozornění",
            "varování",
            "uyarı",
            "uyari",
            "предупреждение",
            "警告",
            "경고",
        ],
    ),
    (
        Severity::Error,
        &[
            "fehler",
            "schwerwiegend",
            "erreur",
            "grave",
            "errore",
            "fout",
            "błąd",
            "blad",
            "chyba",
            "fel",
            "fejl",
            "feil",
            "hata",
            "ошибка",
            "错误",
            "錯誤",
            "严重",
            "嚴重的",
            "エラー",
            "오류",
            "심각",
        ],
    ),
    (
        Severity::Critical,
        &[
            "kritisch",
            "critique",
            "crítico",
            "critico",
            "kritiek",
            "krytyczny",
            "kritisk",
            "kritická",
            "kritik",
            "критический",
            "критическая",
            "关键",
            "嚴重",
            "重大",
            "致命的",
            "위험",
        ],
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

    /// The severity that a word means, in any case and in some languages, with blanks around it. Go's slog writes
    /// levels between two words as the lower one and a difference, `INFO+2`.
    pub fn of_word(word: &[u8]) -> Option<Severity> {
        let word = word.trim_ascii();
        if let Some((word, difference)) = with_difference(word) {
            return Severity::of_slog(Severity::of_word(word)?, difference);
        }
        let mut lower = [0; WORD_BYTES_MAX];
        let Some(lower) = lower.get_mut(..word.len()) else {
            return translated(word);
        };
        lower.copy_from_slice(word);
        lower.make_ascii_lowercase();
        let is_it = |row: &&Row| {
            row.1.as_bytes() == lower || row.4.iter().any(|word| word.as_bytes() == lower)
        };
        let found = ROWS.iter().find(is_it).map(|row| row.0);
        found.or_else(|| translated(word))
    }

    /// All texts that mean a severity in a field without a scale of its own, in lower case.
    pub fn texts() -> impl Iterator<Item = (Severity, String)> {
        let words = ROWS.iter().flat_map(|row| {
            let words = std::iter::once(row.1).chain(row.4.iter().copied());
            words.map(|word| (row.0, word.to_owned()))
        });
        let numbers = (0..=LOGGER_NUMBER_MAX)
            .filter_map(|number| Some((Severity::of_logger(number)?, number.to_string())));
        let translations = TRANSLATIONS
            .iter()
            .flat_map(|(severity, words)| words.iter().map(|word| (*severity, (*word).to_owned())));
        words.chain(numbers).chain(translations)
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
            "LogLevel" | "logLevel" => Severity::of_dotnet(number),
            "severity" | "SEVERITY" | "Severity" if number >= 100 => Severity::of_google(number),
            _ => Severity::of_logger(number),
        }
    }

    /// Scales that do not overlap: syslog's 0 to 7, the tens of pino and Bunyan, the hundreds of Monolog, those
    /// of java.util.logging above them, and the thousands of log4j and logback.
    fn of_logger(number: u32) -> Option<Severity> {
        Some(match number {
            0..=7 => return Severity::of_syslog(cast::low_u8(number)),
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
            600 => Severity::Fatal,
            700 => Severity::Debug,
            800 => Severity::Info,
            900 => Severity::Warn,
            1000 => Severity::Error,
            5000 => Severity::Trace,
            10_000 => Severity::Debug,
            20_000 => Severity::Info,
            30_000 => Severity::Warn,
            40_000 => Severity::Error,
            LOGGER_NUMBER_MAX => Severity::Fatal,
            _ => return None,
        })
    }

    /// Scales that begin with 0 for the least, as of Microsoft.Extensions.Logging.
    fn of_dotnet(number: u32) -> Option<Severity> {
        Some(match number {
            0 => Severity::Trace,
            1 => Severity::Debug,
            2 => Severity::Info,
            3 => Severity::Warn,
            4 => Severity::Error,
            5 => Severity::Critical,
            _ => return None,
        })
    }

    /// The same of Application Insights, which has no trace and whose verbose is 0.
    pub fn of_application_insights(number: u32) -> Option<Severity> {
        Severity::of_dotnet(number.checked_add(1)?)
    }

    /// Levels of Windows' events.
    pub fn of_windows(number: u32) -> Option<Severity> {
        Some(match number {
            0 | 4 => Severity::Info,
            1 => Severity::Critical,
            2 => Severity::Error,
            3 => Severity::Warn,
            5 => Severity::Trace,
            _ => return None,
        })
    }

    /// Severities of Google's logging library, glog.
    pub fn of_glog(number: u32) -> Option<Severity> {
        Some(match number {
            0 => Severity::Info,
            1 => Severity::Warn,
            2 => Severity::Error,
            3 => Severity::Fatal,
            _ => return None,
        })
    }

    fn of_google(number: u32) -> Option<Severity> {
        Some(match number {
            100 => Severity::Debug,
            200 => Severity::Info,
            300 => Severity::Notice,
            400 => Severity::Warn,
            500 => Severity::Error,
            600 => Severity::Critical,
            700 => Severity::Alert,
            800 => Severity::Fatal,
            _ => return None,
        })
    }

    /// slog's words stand four apart, from -4 for debug.
    fn of_slog(word: Severity, difference: i32) -> Option<Severity> {
        let base = match word {
            Severity::Debug => -4,
            Severity::Info => 0,
            Severity::Warn => 4,
            Severity::Error => 8,
            _ => return None,
        };
        Some(match base + difference {
            ..-4 => Severity::Trace,
            -4..0 => Severity::Debug,
            0..4 => Severity::Info,
            4..8 => Severity::Warn,
            8..12 => Severity::Error,
            12.. => Severity::Critical,
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

    /// The severity of a number in OpenTelemetry (logs data model, field `SeverityNumber`). A higher number is never a
    /// lower severity.
    pub fn of_opentelemetry(number: u32) -> Option<Severity> {
        Some(match number {
            1..=4 => Severity::Trace,
            5..=8 => Severity::Debug,
            9 => Severity::Info,
            10..=12 => Severity::Notice,
            13..=16 => Severity::Warn,
            17 => Severity::Error,
            18 => Severity::Critical,
            19..=20 => Severity::Alert,
            21..=24 => Severity::Fatal,
            _ => return None,
        })
    }
}

/// The severity that a word of another language means, in any case.
fn translated(word: &[u8]) -> Option<Severity> {
    // Numbers and most texts are told at once.
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte >= 0x80 || *byte == b' ';
    if word.len() > TRANSLATION_BYTES_MAX || word.len() < 3 || !word.iter().all(is_letter) {
        return None;
    }
    let lower = std::str::from_utf8(word).ok()?.to_lowercase();
    let mut rows = TRANSLATIONS.iter();
    let row = rows.find(|(_, words)| words.contains(&&*lower))?;
    Some(row.0)
}

/// `INFO+2`, `DEBUG-4`: a word and a difference of one or two digits.
fn with_difference(word: &[u8]) -> Option<(&[u8], i32)> {
    let at = word.iter().position(|byte| matches!(byte, b'+' | b'-'))?;
    let (word, difference) = word.split_at(at);
    let digits = &difference[1..];
    let is_number = (1..=2).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let difference = std::str::from_utf8(difference).ok().filter(|_| is_number)?;
    Some((word, difference.parse().ok()?))
}

/// True if a field of this name says a severity: one of [`SEVERITY_LABELS`] once each character that labels
/// cannot have is `_`.
pub fn is_severity_field(name: &str) -> bool {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '_'
        }
    };
    let is_it =
        |label: &&str| label.len() <= name.len() && label.chars().eq(name.chars().map(plain));
    SEVERITY_LABELS.iter().any(is_it)
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
        for (_, translations) in TRANSLATIONS {
            words.extend(translations);
            for word in translations {
                assert!(word.len() <= TRANSLATION_BYTES_MAX, "{word}");
                assert_eq!(word.to_lowercase(), *word);
            }
        }
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
    }

    #[test]
    fn higher_numbers_of_opentelemetry_are_never_lower() {
        let all: Vec<Severity> = (1..=24).filter_map(Severity::of_opentelemetry).collect();
        assert_eq!(all.len(), 24);
        assert!(all.is_sorted(), "{all:?}");
        for severity in Severity::all() {
            assert_eq!(
                Severity::of_opentelemetry(severity.number().into()),
                Some(severity)
            );
        }
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
    fn fields_of_severities_are_told_by_their_names() {
        for name in [
            "level",
            "log.level",
            "@l",
            "@level",
            "LogLevel",
            "log level",
            "PRIORITY",
        ] {
            assert!(is_severity_field(name), "{name}");
        }
        for name in ["", "levels", "a.level", "l", "loglevels", "Log.Level"] {
            assert!(!is_severity_field(name), "{name}");
        }
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
            ("LogLevel", "Information", Some(Severity::Info)),
            ("LogLevel", "2", Some(Severity::Info)),
            ("LogLevel", "5", Some(Severity::Critical)),
            ("LogLevel", "6", None),
            ("severity", "500", Some(Severity::Error)),
            ("severity", "3", Some(Severity::Error)),
            ("severity", "800", Some(Severity::Fatal)),
            ("level", "500", Some(Severity::Critical)),
            ("level_value", "30000", Some(Severity::Warn)),
            ("level", "900", Some(Severity::Warn)),
            ("lvl", "eror", Some(Severity::Error)),
            ("lvl", "dbug", Some(Severity::Debug)),
            ("level", "INFO+2", Some(Severity::Info)),
            ("level", "DEBUG-4", Some(Severity::Trace)),
            ("level", "ERROR+4", Some(Severity::Critical)),
            ("level", "info-level", None),
            ("level", "INFO+999", None),
            ("level", "FEHLER", Some(Severity::Error)),
            ("level", "AVERTISSEMENT", Some(Severity::Warn)),
            ("level", "Información", Some(Severity::Info)),
            ("level", "INFORMACIÓN", Some(Severity::Info)),
            ("level", "Ошибка", Some(Severity::Error)),
            ("level", "警告", Some(Severity::Warn)),
            ("level", "Fehlerhaft", None),
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
