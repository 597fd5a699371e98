//! Words for levels, and how certain each is.

/// How easily a word is taken for a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strength {
    /// In capitals by itself, in brackets, before a colon or behind the time.
    Plain,
    /// In brackets or between bars, in capitals behind a time, or before a colon where a line begins.
    Weak,
    /// As a weak one, and only in capitals.
    Capital,
    /// In brackets or between bars only.
    Bracketed,
}

/// A word for a level.
#[derive(Clone, Copy)]
pub(super) struct Word {
    pub(super) level: &'static str,
    pub(super) strength: Strength,
}

/// The most letters of a word for a level.
const WORD_BYTES_MAX: usize = 13;

/// First letters of words for levels, by the number of letters: most words of a line are told by it to be none.
const INITIALS: [u32; WORD_BYTES_MAX + 1] = {
    let mut initials = [0; WORD_BYTES_MAX + 1];
    initials[2] = letters(b"IWE");
    initials[3] = letters(b"DETVIWCFPL");
    initials[4] = letters(b"IWCTDEFPNLASV");
    initials[5] = letters(b"TDEFAPFESGIM");
    initials[6] = letters(b"NSDFCE");
    initials[7] = letters(b"WVSHCEA");
    initials[8] = letters(b"CSK");
    initials[9] = letters(b"E");
    initials[10] = letters(b"A");
    initials[11] = letters(b"IA");
    initials[12] = letters(b"N");
    initials[13] = letters(b"IAS");
    initials
};

/// A set of letters.
const fn letters(text: &[u8]) -> u32 {
    let mut set = 0;
    let mut at = 0;
    while at < text.len() {
        set |= 1 << (text[at] - b'A');
        at += 1;
    }
    set
}

/// True if a word for a level has as many letters as `word` and its first one.
pub(super) fn may_be(word: &[u8]) -> bool {
    let (Some(set), Some(first)) = (INITIALS.get(word.len()), word.first()) else {
        return false;
    };
    let letter = first.to_ascii_uppercase().wrapping_sub(b'A');
    letter < 26 && set & (1 << letter) != 0
}

/// The word for a level that `word` is, in any case.
pub(super) fn of(word: &[u8]) -> Option<Word> {
    if !may_be(word) {
        return None;
    }
    let mut upper = [0; WORD_BYTES_MAX];
    let upper = upper.get_mut(..word.len())?;
    upper.copy_from_slice(word);
    upper.make_ascii_uppercase();
    let plain = |level| (level, Strength::Plain);
    let weak = |level| (level, Strength::Weak);
    let capital = |level| (level, Strength::Capital);
    let bracketed = |level| (level, Strength::Bracketed);
    let (level, strength) = match &*upper {
        b"TRACE" => plain("trace"),
        b"DEBUG" | b"DBG" => plain("debug"),
        b"INFO" | b"INFORMATION" | b"INFORMATIONAL" => plain("info"),
        b"NOTICE" => plain("notice"),
        b"WARN" | b"WARNING" => plain("warn"),
        b"ERROR" | b"ERR" | b"SEVERE" => plain("error"),
        b"CRITICAL" | b"CRIT" => plain("critical"),
        b"ALERT" => plain("alert"),
        b"FATAL" | b"PANIC" | b"EMERG" | b"EMERGENCY" => plain("fatal"),
        // Three and four letters: Serilog, NATS, zerolog, Ceph; .NET; logrus and charm; Supervisor. And npm's, as winston has
        // them.
        b"TRC" | b"TRCE" | b"TRAC" | b"VRB" | b"VERBOSE" | b"SILLY" => weak("trace"),
        b"DBUG" | b"DEBU" | b"DEBG" => weak("debug"),
        b"INF" => weak("info"),
        b"WRN" => weak("warn"),
        b"EROR" | b"ERRO" | b"FAIL" => weak("error"),
        b"CRT" | b"DPANIC" => weak("critical"),
        // dnf.
        b"DDEBUG" | b"SUBDEBUG" => weak("debug"),
        // Aruba.
        b"NOTI" => bracketed("notice"),
        b"ERRS" => bracketed("error"),
        b"ALRT" => bracketed("alert"),
        b"EMRG" => bracketed("fatal"),
        b"FTL" | b"FATA" | b"PANI" | b"PNC" => weak("fatal"),
        // java.util.logging.
        b"FINEST" | b"FINER" => capital("trace"),
        b"FINE" | b"CONFIG" => capital("debug"),
        // MySQL and MariaDB; loguru; NestJS; X.Org.
        b"NOTE" | b"SYSTEM" | b"SUCCESS" | b"LOG" | b"II" => bracketed("info"),
        b"NOTIFICATION" => bracketed("info"),
        // German, French, Spanish, Portuguese and Italian, as log4j, java.util.logging and products of Windows have them.
        b"HINWEIS" => weak("notice"),
        b"WARNUNG" | b"AVERTISSEMENT" | b"ADVERTENCIA" | b"AVISO" | b"AVVERTENZA" => weak("warn"),
        b"FEHLER" | b"ERREUR" | b"ERRORE" | b"SCHWERWIEGEND" => weak("error"),
        b"GRAVE" => capital("error"),
        b"KRITISCH" | b"CRITIQUE" | b"CRITICO" => weak("critical"),
        b"INFOS" => capital("info"),
        // Nokia's routers.
        b"MAJOR" => bracketed("error"),
        b"MINOR" => bracketed("warn"),
        b"CLEARED" => bracketed("info"),
        b"WW" => bracketed("warn"),
        b"EE" => bracketed("error"),
        _ => return None,
    };
    Some(Word { level, strength })
}

/// True if a word that is a level in brackets only is one in these: MySQL's `[System]` stands before a code,
/// X.Org has parentheses, loguru bars.
pub(super) fn is_certain_in(word: &[u8], before: Option<u8>, behind: &[u8]) -> bool {
    match word.len() {
        2 => before == Some(b'(') && behind.starts_with(b")"),
        4 if word == b"NOTI" || word == b"ERRS" || word == b"ALRT" || word == b"EMRG" => {
            before == Some(b'<')
        }
        6 => before == Some(b'[') && behind.starts_with(b"] [MY-"),
        _ => before != Some(b'<') && before != Some(b'('),
    }
}

/// True for words before which a level is not one: `no error: …`.
pub(super) fn is_negation(word: &[u8]) -> bool {
    let words: [&[u8]; 4] = [b"no", b"not", b"without", b"zero"];
    words.iter().any(|no| no.eq_ignore_ascii_case(word))
}

/// True for words that are no label behind another one, `Stack trace:`, unless that is the name of PHP.
pub(super) fn is_in_prose(word: &[u8], previous: &[u8]) -> bool {
    let words: [&[u8]; 5] = [b"trace", b"debug", b"info", b"notice", b"alert"];
    previous != b"PHP" && words.iter().any(|prose| prose.eq_ignore_ascii_case(word))
}

/// `Fatal error:` of PHP and compilers.
pub(super) fn is_before_label(word: &[u8], behind: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"fatal") && behind.starts_with(b" error:")
}
