//! Names that nothing has, and those that were probably meant.
//!
//! A key of a settings file stands there for this program only, so one that no setting has is an
//! error. The environment is inherited, and others put names into it that begin like ours: such a
//! variable is named on standard error, and the program goes on.

use std::fmt;

use logpond_search::nearest;

use super::{PREFIX, Setting, TABLE};

/// Variables that are no setting of `logpond serve`, without [`PREFIX`]: those of the commands,
/// then those of this repository's tests, which also run the program.
const OTHERS: [&str; 19] = [
    "ADDR",
    "CONFIG",
    "PAGER",
    "PROXY_TAKES_OVER",
    "TOKEN",
    "TOKEN_FILE",
    "CA_FILE",
    "BLESS",
    "FUZZ_SEED",
    "GO_CLIENT",
    "JAVA_PACKAGES",
    "LOGCLI",
    "MUTATIONS",
    "NODE_PACKAGES",
    "PROMTAIL",
    "PYTHON",
    "SHARED",
    "SIM_SEED",
    "TEST_ALERTMANAGER",
];

/// How the names begin, after [`PREFIX`], that Kubernetes puts into every container where a
/// service is called `logpond`.
const OF_KUBERNETES: [&str; 2] = ["SERVICE_", "PORT"];

/// A variable that begins like ours and that nothing reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVariable {
    /// Its name.
    pub name: String,
    /// The variable that was probably meant.
    pub meant: Option<String>,
}

impl fmt::Display for UnknownVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the variable {} is not known and ignored", self.name)?;
        match &self.meant {
            Some(meant) => write!(f, ", did you mean {meant}?"),
            None => Ok(()),
        }
    }
}

/// The variables among `names` that begin like ours and that nothing reads, in order.
pub fn unknown_variables(names: impl Iterator<Item = String>) -> Vec<UnknownVariable> {
    let settings = TABLE.iter().map(Setting::variable);
    let others = OTHERS.iter().map(|other| format!("{PREFIX}{other}"));
    let known: Vec<String> = settings.chain(others).collect();
    let mut unknown: Vec<UnknownVariable> = names
        .filter(|name| {
            let rest = name.strip_prefix(PREFIX);
            rest.is_some_and(|rest| !OF_KUBERNETES.iter().any(|begin| rest.starts_with(begin)))
                && !known.contains(name)
        })
        .map(|name| {
            let without_prefix = known.iter().map(|known| &known[PREFIX.len()..]);
            let meant = nearest(&name[PREFIX.len()..].to_uppercase(), without_prefix);
            UnknownVariable {
                meant: meant.map(|meant| format!("{PREFIX}{meant}")),
                name,
            }
        })
        .collect();
    unknown.sort_by(|a, b| a.name.cmp(&b.name));
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_nothing_reads_are_named_with_what_was_meant() {
        let table = [
            ("LOGPOND_RETAIN_AGE", None),
            ("LOGPOND_ADDR", None),
            ("LOGPOND_SHARED", None),
            ("LOGPOND_SERVICE_HOST", None),
            ("LOGPOND_PORT_7650_TCP", None),
            ("LOGPONDER", None),
            ("PATH", None),
            ("LOGPOND_ADR", Some(Some("LOGPOND_ADDR"))),
            ("LOGPOND_retain_age", Some(Some("LOGPOND_RETAIN_AGE"))),
            ("LOGPOND_RETAIN-SIZE", Some(Some("LOGPOND_RETAIN_SIZE"))),
            ("LOGPOND_HTPP", Some(Some("LOGPOND_HTTP"))),
            ("LOGPOND_TOKEN", None),
            ("LOGPOND_PASSWORD", Some(None)),
            ("LOGPOND_", Some(None)),
        ];
        for (name, want) in table {
            let unknown = unknown_variables(std::iter::once(name.to_string()));
            let got = unknown.first().map(|unknown| unknown.meant.as_deref());
            assert_eq!(got, want, "{name}");
        }
    }

    /// Each program that the tests start inherits these, and a warning would come first.
    #[test]
    fn variables_that_the_test_command_exports_are_known() {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../test");
        let script = std::fs::read_to_string(script).unwrap();
        let exported: Vec<String> = script
            .split("export ")
            .filter_map(|rest| Some(rest.split_once('=')?.0.to_owned()))
            .filter(|name| name.starts_with(PREFIX))
            .collect();
        assert!(exported.len() >= 2, "{exported:?}");
        assert_eq!(unknown_variables(exported.into_iter()), []);
    }
}
