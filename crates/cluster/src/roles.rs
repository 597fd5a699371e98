//! What a node of a cluster does beside answering questions, which every node does.

use std::fmt;
use std::str::FromStr;

/// The roles of a node. They say what a node is given from now on, not what it may hold: one that
/// was something else before hands on what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// It takes records in, and offers its journal files to stores.
    pub ingests: bool,
    /// It makes segments of journal files, takes copies of segments, and keeps them.
    pub stores: bool,
}

impl Roles {
    /// Everything in one process.
    pub const ALL: Roles = Roles {
        ingests: true,
        stores: true,
    };
    /// Takes records in.
    pub const INGEST: Roles = Roles {
        ingests: true,
        stores: false,
    };
    /// Keeps segments.
    pub const STORE: Roles = Roles {
        ingests: false,
        stores: true,
    };
    /// Answers questions only.
    pub const QUERY: Roles = Roles {
        ingests: false,
        stores: false,
    };

    /// The name, as nodes tell it to each other and to people.
    pub fn as_str(self) -> &'static str {
        match (self.ingests, self.stores) {
            (true, true) => "serve",
            (true, false) => "ingest",
            (false, true) => "store",
            (false, false) => "query-node",
        }
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownRoles;

impl FromStr for Roles {
    type Err = UnknownRoles;

    fn from_str(text: &str) -> Result<Roles, UnknownRoles> {
        let all = [Roles::ALL, Roles::INGEST, Roles::STORE, Roles::QUERY];
        let found = all.into_iter().find(|roles| roles.as_str() == text);
        found.ok_or(UnknownRoles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for roles in [Roles::ALL, Roles::INGEST, Roles::STORE, Roles::QUERY] {
            assert_eq!(roles.to_string().parse(), Ok(roles));
        }
        assert_eq!("ingester".parse::<Roles>(), Err(UnknownRoles));
    }
}
