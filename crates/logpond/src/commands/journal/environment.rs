//! What the environment says of the pager and of colours: what journalctl hears of it, too.

use std::ffi::OsString;

use crate::commands::query::sink::Pagers;
use logpond_host::terminal;
use logpond_host::terminal::When;

/// Options of less: leave at once if it fits a screen, keep colours, do not clear, wrap long lines, name
/// what it shows, and end with an interrupt.
const LESS: &str = "FRXMK";

/// What has less begin at the end.
const AT_END: &str = "+G";

/// Reads variables.
type Variables<'v> = &'v dyn Fn(&str) -> Option<OsString>;

/// The pager: as for journalctl, `LESS` gives way, which is for other uses of less.
pub(super) fn pagers(is_at_end: bool, variable: Variables<'_>) -> Pagers {
    let mut less = variable("SYSTEMD_LESS").unwrap_or_else(|| LESS.into());
    if is_at_end {
        less.push(" ");
        less.push(AT_END);
    }
    let mut given = vec![("LESS", less)];
    if let Some(charset) = variable("SYSTEMD_LESSCHARSET") {
        given.push(("LESSCHARSET", charset));
    }
    Pagers {
        named_by: &["LOGPOND_PAGER", "SYSTEMD_PAGER", "PAGER"],
        given,
    }
}

/// Whether there are colours: as the flag says, then `SYSTEMD_COLORS`, then as for all commands.
pub(super) fn colours(flag: When, is_terminal: bool, variable: Variables<'_>) -> bool {
    let given = variable("SYSTEMD_COLORS").filter(|_| flag == When::Auto);
    let given = given.map(|value| value.to_string_lossy().to_lowercase());
    match given.as_deref() {
        Some("1" | "yes" | "y" | "true" | "t" | "on" | "16" | "256" | "24bit") => true,
        Some("0" | "no" | "n" | "false" | "f" | "off") => false,
        _ => terminal::colours(flag, is_terminal, variable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variables with their values.
    type Set<'s> = &'s [(&'s str, &'s str)];

    fn variables<'s>(set: Set<'s>) -> impl Fn(&str) -> Option<OsString> + 's {
        move |name| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        }
    }

    #[test]
    fn less_is_told_what_journalctl_tells_it() {
        let table: [(Set<'_>, bool, Set<'_>); 4] = [
            (&[], false, &[("LESS", "FRXMK")]),
            (&[("LESS", "-i")], true, &[("LESS", "FRXMK +G")]),
            (&[("SYSTEMD_LESS", "FRSX")], true, &[("LESS", "FRSX +G")]),
            (
                &[("SYSTEMD_LESSCHARSET", "utf-8")],
                false,
                &[("LESS", "FRXMK"), ("LESSCHARSET", "utf-8")],
            ),
        ];
        for (set, is_at_end, expected) in table {
            let given = pagers(is_at_end, &variables(set)).given;
            let expected = expected
                .iter()
                .map(|(name, value)| (*name, OsString::from(value)));
            assert_eq!(given, expected.collect::<Vec<_>>(), "{set:?}");
        }
    }

    #[test]
    fn colours_are_those_of_journalctl() {
        let table: [(When, bool, Set<'_>, bool); 9] = [
            (When::Auto, true, &[], true),
            (When::Auto, false, &[], false),
            (When::Auto, true, &[("NO_COLOR", "1")], false),
            (When::Auto, false, &[("SYSTEMD_COLORS", "Yes")], true),
            (
                When::Auto,
                false,
                &[("SYSTEMD_COLORS", "256"), ("NO_COLOR", "1")],
                true,
            ),
            (When::Auto, true, &[("SYSTEMD_COLORS", "0")], false),
            (When::Auto, true, &[("SYSTEMD_COLORS", "auto-256")], true),
            (When::Always, false, &[("SYSTEMD_COLORS", "0")], true),
            (When::Never, true, &[("SYSTEMD_COLORS", "1")], false),
        ];
        for (flag, is_terminal, set, expected) in table {
            let found = colours(flag, is_terminal, &variables(set));
            assert_eq!(found, expected, "{flag:?} {is_terminal} {set:?}");
        }
    }
}
