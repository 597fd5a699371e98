//! The elements of an array.

use super::Scanner;

/// The texts of an array's first elements, at most so many; of a text that is none, those before what is wrong.
pub(crate) fn elements(text: &str, most: usize) -> impl Iterator<Item = &str> {
    let mut scanner = Scanner {
        is_deep: true,
        ..Scanner::new(text)
    };
    scanner.space();
    let mut is_open = scanner.byte(b'[', "'['").is_ok();
    let next = move || {
        scanner.space();
        let start = scanner.at;
        if !is_open || scanner.skip_value().is_err() {
            return None;
        }
        let element = &text[start..scanner.at];
        scanner.space();
        is_open = scanner.byte(b',', "','").is_ok();
        Some(element)
    };
    std::iter::from_fn(next).take(most)
}

#[cfg(test)]
mod tests {
    use super::elements;

    #[test]
    fn elements_are_parted() {
        let all = |text| elements(text, 3).collect::<Vec<_>>();
        let list = r#" [ {"a":[1,2]} , "x,]" ,7]"#;
        assert_eq!(all(list), [r#"{"a":[1,2]}"#, r#""x,]""#, "7"]);
        assert_eq!(all("[1,2,3,4]"), ["1", "2", "3"]);
        assert_eq!(all(r#"[1,"#), ["1"]);
        assert_eq!(all("[]"), [""; 0]);
        assert_eq!(all("{}"), [""; 0]);
        assert_eq!(all(&"[".repeat(1000)), [""; 0]);
    }
}
