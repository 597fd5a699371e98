//! Lists and objects of JSON of which only so many elements are held: a body of nothing but empty ones
//! takes a hundred times its length as values.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

/// A list of at most `MAX` elements; a longer one is an error.
pub(super) struct AtMost<T, const MAX: usize>(pub(super) Vec<T>);

/// The first `MAX` elements of a list; further ones are checked and left out. Whoever reads it takes
/// one more than may be there as the sign that it is too long.
pub(super) struct FirstOf<T, const MAX: usize>(pub(super) Vec<T>);

impl<T, const MAX: usize> Default for AtMost<T, MAX> {
    fn default() -> Self {
        AtMost(Vec::new())
    }
}

impl<T, const MAX: usize> Default for FirstOf<T, MAX> {
    fn default() -> Self {
        FirstOf(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for AtMost<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (list, is_whole) = deserializer.deserialize_seq(Collect::<T>::new(MAX))?;
        if is_whole {
            Ok(AtMost(list))
        } else {
            Err(D::Error::custom(format!(
                "a list has more than {MAX} elements; send it in parts"
            )))
        }
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for FirstOf<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (list, _) = deserializer.deserialize_seq(Collect::<T>::new(MAX))?;
        Ok(FirstOf(list))
    }
}

/// Collects the first elements of a list, and says whether these were all.
struct Collect<T> {
    max: usize,
    of: PhantomData<T>,
}

impl<T> Collect<T> {
    fn new(max: usize) -> Collect<T> {
        Collect {
            max,
            of: PhantomData,
        }
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Collect<T> {
    type Value = (Vec<T>, bool);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while list.len() < self.max {
            match elements.next_element()? {
                Some(element) => list.push(element),
                None => return Ok((list, true)),
            }
        }
        let mut is_whole = true;
        while elements.next_element::<IgnoredAny>()?.is_some() {
            is_whole = false;
        }
        Ok((list, is_whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_elements_are_held_than_are_allowed() {
        for (json, held) in [("[]", 0), ("[1]", 1), ("[1,2,3]", 3)] {
            let list: AtMost<u32, 3> = serde_json::from_str(json).unwrap();
            assert_eq!(list.0.len(), held);
        }
        let error = serde_json::from_str::<AtMost<u32, 3>>("[1,2,3,4]")
            .err()
            .unwrap();
        assert!(
            error.to_string().contains("more than 3 elements"),
            "{error}"
        );
        for (json, held) in [("[1]", 1), ("[1,2,3]", 3), ("[1,2,3,\"no number\",{}]", 3)] {
            let list: FirstOf<u32, 3> = serde_json::from_str(json).unwrap();
            assert_eq!(list.0.len(), held);
        }
        assert!(serde_json::from_str::<FirstOf<u32, 3>>("[1,2,3,4").is_err());
    }
}
