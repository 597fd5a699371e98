//! Names of nodes and of their processes.

use std::fmt;
use std::str::FromStr;

/// A text is not 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HexError;

impl fmt::Display for HexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an identity is 32 lower-case hexadecimal digits")
    }
}

impl std::error::Error for HexError {}

fn parse_hex(text: &str) -> Result<u128, HexError> {
    let is_lower_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if text.len() != 32 || !text.bytes().all(is_lower_hex) {
        return Err(HexError);
    }
    u128::from_str_radix(text, 16).map_err(|_| HexError)
}

macro_rules! random_identity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u128);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = HexError;

            fn from_str(text: &str) -> Result<$name, HexError> {
                parse_hex(text).map($name)
            }
        }
    };
}

random_identity! {
    /// A node: a data directory, whatever process serves it from whatever address. Random, minted
    /// with the directory.
    NodeId
}

random_identity! {
    /// One life of a node's process. Random, so that a node that came back is told from its former
    /// self, and what was remembered of that one is not believed of this one.
    ProcessId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_come_back() {
        let node = NodeId(0xabc);
        assert_eq!(node.to_string().parse(), Ok(node));
        for text in [
            "",
            "abc",
            "0000000000000000000000000000ABCD",
            "+0000000000000000000000000000abc",
        ] {
            assert_eq!(text.parse::<ProcessId>(), Err(HexError), "{text}");
        }
    }
}
