//! A place in a text that is read from left to right.

/// The most digits and letters that are counted.
const COUNTED_MAX: usize = 18;

/// Bytes that are read, and how far.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'t> {
    text: &'t [u8],
    /// Bytes that are read.
    pub(super) at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t [u8]) -> Cursor<'t> {
        Cursor { text, at: 0 }
    }

    /// The bytes that are not read.
    pub(super) fn rest(&self) -> &'t [u8] {
        &self.text[self.at.min(self.text.len())..]
    }

    /// The next byte.
    pub(super) fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    /// The byte so many after the next one.
    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    /// True if a digit is so many bytes after the next one.
    pub(super) fn is_digit_at(&self, ahead: usize) -> bool {
        self.peek_at(ahead).is_some_and(|b| b.is_ascii_digit())
    }

    /// True if the last byte that was read is of a character beyond ASCII.
    pub(super) fn is_behind_text(&self) -> bool {
        let last = self.at.checked_sub(1).and_then(|at| self.text.get(at));
        last.is_some_and(|byte| *byte >= 0x80)
    }

    /// Reads a byte, if it is this one.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    /// Reads a text, if it is this one.
    pub(super) fn eat_text(&mut self, text: &[u8]) -> bool {
        let is_it = self.rest().starts_with(text);
        self.at += if is_it { text.len() } else { 0 };
        is_it
    }

    /// Reads at most so many spaces.
    pub(super) fn eat_spaces(&mut self, count_max: usize) -> usize {
        let rest = self.rest().iter().take(count_max);
        let count = rest.take_while(|byte| **byte == b' ').count();
        self.at += count;
        count
    }

    /// How many digits come next.
    pub(super) fn digits(&self) -> usize {
        let rest = self.rest().iter().take(COUNTED_MAX);
        rest.take_while(|byte| byte.is_ascii_digit()).count()
    }

    /// How many letters come next.
    pub(super) fn letters(&self) -> usize {
        let rest = self.rest().iter().take(COUNTED_MAX);
        rest.take_while(|byte| byte.is_ascii_alphabetic()).count()
    }

    /// Reads a number of so many digits, nine at most.
    pub(super) fn number(&mut self, digits: usize) -> Option<u32> {
        debug_assert!(digits < 10);
        let mut value = 0;
        for byte in self.rest().get(..digits)? {
            value = value * 10 + super::digit(*byte)?;
        }
        self.at += digits;
        Some(value)
    }
}
