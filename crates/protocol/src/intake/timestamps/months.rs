//! Names of months in other languages than English: Dutch, French, German, Italian, Polish, Portuguese, Russian and
//! Spanish, as locales write them (Unicode's CLDR), in full and abbreviated, in any case.
//!
//! Invariant: no name stands for two months. Names that are English as well are left out.

use logpond_record::cast;

/// The names of each month.
const NAMES: [&str; 12] = [
    "januar jänner jän januari janvier janv enero ene gennaio gen janeiro styczeń stycznia sty январь января янв",
    "februar februari février févr fév fevrier fevr febrero febbraio fevereiro fev luty lutego lut февраль февраля фев",
    "märz mär mrz maerz maart mrt mars marzo março marco marzec marca март марта мар",
    "avril avr abril abr aprile april kwiecień kwietnia kwi апрель апреля апр",
    "mai mei mayo maggio mag maio maj maja май мая",
    "juni juin junio giugno giu junho czerwiec czerwca cze июнь июня июн",
    "juli juillet juil julio luglio lug julho lipiec lipca lip июль июля июл",
    "août aout agosto ago augustus sierpień sierpnia sie август августа авг",
    "septembre septiembre settembre setembro set wrzesień września wrz сентябрь сентября сен сент",
    "oktober okt octobre octubre ottobre ott outubro out październik października paź октябрь октября окт",
    "novembre noviembre novembro listopad listopada lis ноябрь ноября ноя нояб",
    "dezember dez décembre déc decembre diciembre dic dicembre dezembro grudzień grudnia gru декабрь декабря дек",
];

/// The most bytes of a name, in small letters.
const NAME_BYTES_MAX: usize = 24;

/// Letters that a name begins with, by the first one: a bit for each second one. Most words of other texts are told by them.
const STARTS: [u32; 26] = starts();

const fn starts() -> [u32; 26] {
    let mut starts = [0; 26];
    let mut month = 0;
    while month < NAMES.len() {
        let names = NAMES[month].as_bytes();
        let mut at = 0;
        while at + 1 < names.len() {
            let is_start = at == 0 || names[at - 1] == b' ';
            if is_start && names[at].is_ascii_lowercase() && names[at + 1].is_ascii_lowercase() {
                starts[(names[at] - b'a') as usize] |= 1 << (names[at + 1] - b'a');
            }
            at += 1;
        }
        month += 1;
    }
    starts
}

/// True unless no name begins with these letters.
fn may_begin(word: &str) -> bool {
    let [first, second, ..] = *word.as_bytes() else {
        return false;
    };
    if !first.is_ascii() || !second.is_ascii() {
        return true;
    }
    let place = |byte: u8| byte.to_ascii_lowercase() - b'a';
    STARTS[usize::from(place(first))] & (1 << place(second)) != 0
}

/// The bytes of the word that a text begins with, which may be a name.
pub(super) fn word_bytes(text: &[u8]) -> usize {
    let is_part = |byte: &&u8| byte.is_ascii_alphabetic() || **byte >= 0x80;
    text.iter().take(NAME_BYTES_MAX).take_while(is_part).count()
}

/// The number of the month that a text begins with the name of, and the bytes of the name.
pub(super) fn read(text: &[u8]) -> Option<(u32, usize)> {
    let length = word_bytes(text);
    let word = std::str::from_utf8(&text[..length]).ok()?;
    if length < 3 || !may_begin(word) {
        return None;
    }
    let word = word.to_lowercase();
    let is_it = |names: &str| names.split(' ').any(|name| name == word);
    let month = NAMES.iter().position(|names| is_it(names))?;
    Some((cast::low_u32(month) + 1, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_one_month_each() {
        let mut all: Vec<&str> = NAMES.iter().flat_map(|names| names.split(' ')).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(all.iter().all(|name| name.len() <= NAME_BYTES_MAX));
        assert!(all.iter().all(|name| name.to_lowercase() == **name));
        for name in all {
            assert!(may_begin(name) && may_begin(&name.to_uppercase()), "{name}");
        }
        for word in ["order", "shop", "the", "x"] {
            assert!(!may_begin(word), "{word}");
        }
    }

    #[test]
    fn names_are_read() {
        for (text, expected) in [
            ("Dez 2026", Some((12, 3))),
            ("MÄRZ-26", Some((3, 5))),
            ("ноября 2026", Some((11, 12))),
            ("déc. 2026", Some((12, 4))),
            ("lis 2026", Some((11, 3))),
            ("x", None),
            ("shop", None),
            ("", None),
        ] {
            assert_eq!(read(text.as_bytes()), expected, "{text}");
        }
    }
}
