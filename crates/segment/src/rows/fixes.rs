//! The column `_fix`: slots whose text differs from what their value renders to.
//!
//! A row's fixes stand one after another as `slot:length:text`, numbers in decimal.

use logpond_record::Fix;

/// Appends one fix.
pub(super) fn write_fix(fix: &Fix<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{}:{}:", fix.slot, fix.text.len()).as_bytes());
    out.extend_from_slice(&fix.text);
}

/// Reads the fixes of a row; anything that [`write_fix`] did not write ends the iteration.
pub struct Fixes<'a> {
    rest: &'a [u8],
}

impl<'a> Fixes<'a> {
    /// The fixes of a row.
    pub fn new(stored: Option<&'a [u8]>) -> Fixes<'a> {
        Fixes {
            rest: stored.unwrap_or(b""),
        }
    }

    fn number(&mut self) -> Option<usize> {
        let end = memchr::memchr(b':', self.rest)?;
        let number = std::str::from_utf8(&self.rest[..end]).ok()?.parse().ok()?;
        self.rest = &self.rest[end + 1..];
        Some(number)
    }
}

impl<'a> Iterator for Fixes<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (slot, length) = (self.number()?, self.number()?);
        let text = self.rest.get(..length)?;
        self.rest = &self.rest[length..];
        Some((slot, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixes_come_back() {
        let fixes = [(0, &b"2.70"[..]), (12, b""), (999, b"1:2:\n")];
        let mut stored = Vec::new();
        for (slot, text) in fixes {
            write_fix(
                &Fix {
                    slot,
                    text: text.into(),
                },
                &mut stored,
            );
        }
        assert!(Fixes::new(Some(&stored)).eq(fixes.map(|(slot, text)| (slot as usize, text))));
        assert_eq!(Fixes::new(Some(b"1:99:x")).count(), 0);
        assert_eq!(Fixes::new(None).count(), 0);
    }
}
