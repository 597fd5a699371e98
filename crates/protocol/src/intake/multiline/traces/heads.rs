//! Lines that are records by their start: whole objects of JSON, entries of apt's history, Spring's banner, and the last
//! words of native programs.
//!
//! ```text
//! {"level":"error","msg":"full"}       Start-Date: 2026-11-27  00:51:25      lua: shop.lua:3: full
//!     at save (/app/a.js:1:2)          Commandline: apt install curl         stack traceback:
//!                                      End-Date: 2026-11-27  00:51:27            [C]: in ?
//! ```
//!
//! A trace below an object is a record of its own: with it, the object would be none any more, and its fields would be
//! hidden.
//!
//! Sources: apt, `apt-pkg/pkgcache`, "history.log"; Lua, `lua.c`; C, `assert(3)`; Swift, `fatalError`; glibc, `__libc_message`.

use super::Bond::Own;
use super::Next::{Hold, Refuse, Take};
use super::Stage::{Body, Done, Gap, Text};
use super::Test::{Any, Blank, By, Indented, Is, Starts};
use super::marks::{has, is_continuation};
use super::{Row, Shape, Start, crash};

/// A whole object; nothing belongs to it.
pub(super) const OBJECT: Shape = Shape {
    starts: &[Start(By(is_object), Done, Own)],
    behind: &[],
    rows: &[],
    detail: None,
    crosses_gaps: false,
};

/// The line that ends an entry of apt's history; its time begins no record.
pub(in super::super) const APT_END: &str = "End-Date: ";

pub(super) const APT: Shape = Shape {
    starts: &[Start(Starts("Start-Date: "), Body, Own)],
    behind: &[],
    rows: &[
        Row(&[Body], Starts("Start-Date: "), Refuse),
        Row(&[Body], Starts(APT_END), Take(Done)),
        Row(&[Body], Any, Take(Body)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// The banner of Spring, up to the version.
pub(super) const BANNER: Shape = Shape {
    starts: &[Start(
        Is("  .   ____          _            __ _ _"),
        Body,
        Own,
    )],
    behind: &[],
    rows: &[
        Row(&[Body], Starts(" =========|_|"), Take(Gap)),
        Row(&[Body], By(is_drawing), Take(Body)),
        Row(&[Gap], Blank, Hold(Gap)),
        Row(&[Gap], Starts(" :: Spring Boot ::"), Take(Done)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// Last words, with the calls below them.
pub(super) const LAST_WORDS: Shape = Shape {
    starts: &[
        Start(By(is_assertion), Text, Own),
        Start(By(is_swift), Text, Own),
        Start(By(is_lua), Text, Own),
        Start(Starts("Assertion failed: ("), Text, Own),
        Start(Starts("libc++abi: "), Text, Own),
        Start(Starts("*** stack smashing detected ***"), Text, Own),
        Start(Starts("*** buffer overflow detected ***"), Text, Own),
        Start(Starts("double free or corruption"), Text, Own),
        Start(Starts("free(): invalid "), Text, Own),
        Start(Starts("malloc(): "), Text, Own),
        Start(Starts("Segmentation fault"), Text, Own),
    ],
    behind: &[],
    rows: &[
        Row(&[Text], Indented, Take(Text)),
        Row(&[Text], By(is_continuation), Take(Text)),
        Row(&[Text], By(crash::is_native_frame), Take(Text)),
        Row(&[Text], Starts("======= "), Take(Text)),
        Row(&[Text], Starts("Aborted"), Take(Done)),
        Row(&[Text], Blank, Hold(Text)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// A line of the banner's letters.
fn is_drawing(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'(' | b'\\' | b'/'))
}

/// `{"level":"info", …}`
pub(in super::super) fn is_object(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let inside = line
        .strip_prefix(b"{")
        .unwrap_or_default()
        .trim_ascii_start();
    inside.first() == Some(&b'"') && line.ends_with(b"}")
}

/// ``shop: shop.c:12: save: Assertion `n > 0' failed.``
fn is_assertion(line: &[u8]) -> bool {
    has(line, ": Assertion `") && line.ends_with(b"failed.")
}

/// `shop/main.swift:3: Fatal error: full`, `Fatal error: full: file shop/main.swift, line 3`
fn is_swift(line: &[u8]) -> bool {
    has(line, "Fatal error: ") && has(line, ".swift")
}

/// `lua: shop.lua:3: full`, also of LuaJIT and of versions with a number.
fn is_lua(line: &[u8]) -> bool {
    let behind = line.strip_prefix(b"lua").unwrap_or_default();
    let name = behind
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'.');
    let rest = &behind[name.count()..];
    line.starts_with(b"lua") && rest.starts_with(b": ") && has(rest, ".lua:")
}
