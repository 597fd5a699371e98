//! Names of days of the week in other languages than English: Dutch, French, German, Italian, Polish, Portuguese, Russian
//! and Spanish, as locales write them (Unicode's CLDR), in full and abbreviated, in any case; and those of Chinese,
//! Japanese and Korean. The day of the month is beside them, so they are only passed over.

/// The names, which stand before a date.
const NAMES: &str = "montag mo dienstag di mittwoch mi donnerstag do freitag fr samstag sonnabend sa sonntag so \
    lundi lun mardi mar mercredi mer jeudi jeu vendredi ven samedi sam dimanche dim \
    lunes martes miércoles mié jueves jue viernes vie sábado sáb domingo dom \
    lunedì martedì mercoledì giovedì gio venerdì sabato sab domenica \
    segunda seg terça ter quarta qua quinta qui sexta sex \
    maandag ma dinsdag woensdag wo donderdag vrijdag vr zaterdag za zondag zo \
    понедельник пн вторник вт среда ср четверг чт пятница пт суббота сб воскресенье вс \
    poniedziałek pon wtorek wto środa śro czwartek czw piątek pią sobota sob niedziela nie";

/// The first letters of [`NAMES`] that are of ASCII.
const INITIALS: &[u8] = b"mdfsljvgtqwzpcn";

/// The days of Chinese, Japanese and Korean.
const EAST_ASIAN: &str = "日月火水木金土一二三四五六天월화수목금토일";

/// Marks of a day of the week around one of [`EAST_ASIAN`].
const MARKS: [&str; 5] = ["曜日", "曜", "星期", "周", "요일"];

/// Bytes of a character of [`EAST_ASIAN`].
const CHARACTER_BYTES: usize = 3;

/// True if a date may follow a word that ends here: the name of a month, or of a day of the week. Most words that a line
/// begins with are none, and no number follows them.
pub(super) fn is_before_date(behind: &[u8]) -> bool {
    match behind {
        [b' ' | b'-' | b'/', b'0'..=b'9' | b' ', ..] | [b'.' | b',', b' ', b'0'..=b'9', ..] => true,
        [b'.', b',', b' ', ..] => true,
        // `vie nov 27`
        [b' ', a, b, c, b' ', digit, ..] => {
            let is_word = [a, b, c].iter().all(|byte| byte.is_ascii_alphabetic());
            is_word && digit.is_ascii_digit()
        }
        _ => false,
    }
}

/// True for the name that the first `length` bytes of a text are.
pub(super) fn is_name(text: &[u8], length: usize) -> bool {
    let (word, behind) = text.split_at(length);
    if !word
        .first()
        .is_some_and(|first| *first >= 0x80 || INITIALS.contains(&(*first | 0x20)))
    {
        return false;
    }
    let Ok(word) = std::str::from_utf8(word) else {
        return false;
    };
    let word = word.to_lowercase();
    // March in English, Tuesday in French and Spanish: then the name of a month follows.
    let has_month = || {
        let is_between = |byte: &&u8| matches!(byte, b'.' | b',' | b' ' | b'0'..=b'9');
        let between = behind.iter().take_while(is_between).count();
        let after = behind.get(between);
        after.is_some_and(|byte| byte.is_ascii_alphabetic() || *byte >= 0x80)
    };
    let mut names = NAMES.split_whitespace();
    length > 1 && names.any(|name| name == word) && (word != "mar" || has_month())
}

/// The bytes of the name in Chinese, Japanese or Korean that a text begins with; 0 if there is none.
pub(super) fn east_asian(text: &[u8]) -> usize {
    let mark = |at: usize| {
        let mut marks = MARKS
            .iter()
            .filter(|mark| text[at..].starts_with(mark.as_bytes()));
        marks.next().map_or(0, |mark| mark.len())
    };
    let before = mark(0);
    let is_day = text
        .get(before..before + CHARACTER_BYTES)
        .and_then(|day| std::str::from_utf8(day).ok())
        .is_some_and(|day| EAST_ASIAN.contains(day));
    if !is_day {
        return 0;
    }
    let end = before + CHARACTER_BYTES;
    end + mark(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        for name in NAMES.split_whitespace() {
            let first = name.as_bytes()[0];
            assert!(first >= 0x80 || INITIALS.contains(&first), "{name}");
        }
        for (text, length, expected) in [
            ("Fr 27. Nov", 2, true),
            ("ven. 27 nov.", 3, true),
            ("vie nov 27", 3, true),
            ("пт 27 ноября", 4, true),
            ("mar. 24 nov. 2026", 3, true),
            ("shop 27", 4, false),
            ("Mar 3 03:00:00", 3, false),
        ] {
            assert!(is_before_date(&text.as_bytes()[length..]), "{text}");
            assert_eq!(is_name(text.as_bytes(), length), expected, "{text}");
        }
        for behind in [" what: 27", " it", "", ": 7", ".7"] {
            assert!(!is_before_date(behind.as_bytes()), "{behind}");
        }
        for (text, expected) in [
            ("金)", 3),
            ("金曜日 ", 9),
            ("星期五 ", 9),
            ("금요일", 9),
            ("開始", 0),
            ("", 0),
        ] {
            assert_eq!(east_asian(text.as_bytes()), expected, "{text}");
        }
    }
}
