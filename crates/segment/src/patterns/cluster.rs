//! Templates that differ in few words as one.
//!
//! After Drain (He et al., ICWS 2017), but over all templates at once and in an order of their own, so
//! that the order of the records does not matter.

use std::cmp::Ordering;

use logpond_record::cast;

use super::WILDCARD;
use crate::fixed_map::FixedMap;

/// Templates that must agree but for some words before these words are taken for variable: two or three
/// that differ in one word say different things.
const MEMBERS_MIN: usize = 4;

/// A member of a cluster says a thing of its own, rather than something variable, if it has so many records and
/// at least one of so many of all in the cluster; so no cluster has more of these than that.
const OWN_COUNT_MIN: u64 = 32;
const OWN_SHARE: u64 = 32;

/// Of so many words one may differ.
const WORDS_PER_VARIABLE: usize = 3;

/// The most comparisons with a cluster, for each template of the same level and number of words. Where most texts are of
/// words that no others have, more would take minutes and find nothing; what is not compared stays apart.
const COMPARISONS_OF_EACH_MAX: usize = 32;

/// The number of a word that differs among the members of a cluster.
const VARIABLE: u32 = u32::MAX;

/// Counts of the records of a template.
pub trait TemplateCounts {
    /// Records.
    fn count(&self) -> u64;

    /// Adds what was counted of another template of the same level.
    fn merge(&mut self, other: Self);
}

/// A template with what was counted of it.
pub struct Template<C> {
    /// A property that its records share beside it: templates of different levels stay apart.
    pub level: Box<[u8]>,
    /// The template.
    pub text: Box<[u8]>,
    /// What was counted.
    pub found: C,
}

/// Templates of one level with the same number of words.
type Kin<C> = Vec<(Vec<u32>, Template<C>)>;

impl<C: TemplateCounts> Template<C> {
    /// The most frequent first, equal ones by their text and level.
    pub fn by_count(&self, other: &Template<C>) -> Ordering {
        let by_count = other.found.count().cmp(&self.found.count());
        by_count.then_with(|| (&self.text, &self.level).cmp(&(&other.text, &other.level)))
    }
}

/// Puts templates together that differ in few words. Gives them in no order.
pub fn cluster<C: TemplateCounts>(templates: Vec<Template<C>>) -> Vec<Template<C>> {
    let mut words = Words::default();
    let mut kin: FixedMap<(Box<[u8]>, usize), Kin<C>> = FixedMap::default();
    for template in templates {
        let numbers = words.numbers(&template.text);
        let key = (template.level.clone(), numbers.len());
        kin.entry(key).or_default().push((numbers, template));
    }
    let clustered = kin.into_values().flat_map(|kin| cluster_kin(kin, &words));
    clustered.collect()
}

fn cluster_kin<C: TemplateCounts>(mut kin: Kin<C>, words: &Words) -> Vec<Template<C>> {
    kin.sort_unstable_by(|(_, a), (_, b)| {
        let by_count = b.found.count().cmp(&a.found.count());
        by_count.then_with(|| a.text.cmp(&b.text))
    });
    let mut clusters: Vec<Cluster<C>> = Vec::new();
    let mut places = Places::default();
    let mut comparisons_left = kin.len().saturating_mul(COMPARISONS_OF_EACH_MAX);
    for (numbers, template) in kin {
        let fits = |at: u32| clusters[at as usize].fits(&numbers);
        match places.first(&numbers, &mut comparisons_left, fits) {
            Some(at) => clusters[at as usize].add(numbers, template),
            None => {
                places.add(&numbers, cast::low_u32(clusters.len()));
                clusters.push(Cluster::new(numbers, template));
            }
        }
    }
    let clustered: Vec<Template<C>> = clusters.into_iter().flat_map(|c| c.finish(words)).collect();
    joined(clustered)
}

/// Has one template of each text: what the members of a cluster share may be a template that stayed.
fn joined<C: TemplateCounts>(templates: Vec<Template<C>>) -> Vec<Template<C>> {
    let mut places: FixedMap<Box<[u8]>, usize> = FixedMap::default();
    let mut joined: Vec<Template<C>> = Vec::with_capacity(templates.len());
    for template in templates {
        match places.get(&template.text) {
            Some(at) => joined[*at].found.merge(template.found),
            None => {
                places.insert(template.text.clone(), joined.len());
                joined.push(template);
            }
        }
    }
    joined
}

/// The clusters that began with a word at a place, in their order.
///
/// Invariant: a template that fits a cluster differs from it, or meets a variable, in at most one of
/// [`WORDS_PER_VARIABLE`] places. So of any places that are more than that, one has the same word in both: only the
/// clusters of the rarest words are compared.
#[derive(Default)]
struct Places(FixedMap<(usize, u32), Vec<u32>>);

impl Places {
    /// Adds a cluster that begins with these words.
    fn add(&mut self, words: &[u32], cluster: u32) {
        for place in words.iter().copied().enumerate() {
            self.0.entry(place).or_default().push(cluster);
        }
    }

    /// The first cluster that a template of these words fits. Without comparisons left, none.
    fn first(
        &self,
        words: &[u32],
        comparisons_left: &mut usize,
        fits: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let of_place = |place| self.0.get(&place).map_or(&[][..], Vec::as_slice);
        let mut lists: Vec<&[u32]> = words.iter().copied().enumerate().map(of_place).collect();
        lists.sort_unstable_by_key(|list| list.len());
        let mut first: Option<u32> = None;
        for list in &lists[..=words.len() / WORDS_PER_VARIABLE] {
            let before = list
                .iter()
                .take_while(|at| first.is_none_or(|first| **at < first));
            let compared = before.take(*comparisons_left);
            let mut count = 0;
            let mut compared = compared.inspect(|_| count += 1);
            first = compared.find(|at| fits(**at)).copied().or(first);
            *comparisons_left -= count;
        }
        first
    }
}

/// Templates that agree but for some words.
struct Cluster<C> {
    /// The numbers of the words, or [`VARIABLE`].
    words: Vec<u32>,
    variables: usize,
    members: Vec<(Vec<u32>, Template<C>)>,
}

impl<C: TemplateCounts> Cluster<C> {
    fn new(words: Vec<u32>, template: Template<C>) -> Cluster<C> {
        Cluster {
            words: words.clone(),
            variables: 0,
            members: vec![(words, template)],
        }
    }

    /// Whether a template may join.
    fn fits(&self, words: &[u32]) -> bool {
        let room = self.words.len() / WORDS_PER_VARIABLE - self.variables;
        let differing = self.words.iter().zip(words);
        let mut differing = differing.filter(|(mine, word)| **mine != VARIABLE && mine != word);
        differing.nth(room).is_none()
    }

    fn add(&mut self, words: Vec<u32>, template: Template<C>) {
        for (mine, word) in self.words.iter_mut().zip(&words) {
            if *mine != VARIABLE && mine != word {
                *mine = VARIABLE;
                self.variables += 1;
            }
        }
        self.members.push((words, template));
    }

    /// What becomes of the members: those that say a thing of their own stay as they are, the others are one if
    /// they are enough.
    fn finish(self, words: &Words) -> Vec<Template<C>> {
        let all: u64 = self.members.iter().map(|(_, t)| t.found.count()).sum();
        let is_own = |count: u64| count >= OWN_COUNT_MIN && count >= all / OWN_SHARE;
        let members = self.members.into_iter();
        let (own, rest): (Vec<_>, Vec<_>) = members.partition(|(_, t)| is_own(t.found.count()));
        let own = own.into_iter().map(|(_, template)| template);
        let mut rest = rest.into_iter();
        let Some((numbers, first)) = rest.next() else {
            return own.collect();
        };
        let mut cluster = Cluster::new(numbers, first);
        rest.for_each(|(numbers, template)| cluster.add(numbers, template));
        own.chain(cluster.merged(words)).collect()
    }

    fn merged(self, words: &Words) -> Vec<Template<C>> {
        let Cluster {
            words: common,
            members,
            ..
        } = self;
        if members.len() < MEMBERS_MIN {
            return members.into_iter().map(|(_, template)| template).collect();
        }
        let mut text = Vec::new();
        for (place, number) in common.iter().enumerate() {
            if place > 0 {
                text.push(b' ');
            }
            match *number {
                VARIABLE => words.write_common(members.iter().map(|(w, _)| w[place]), &mut text),
                number => text.extend_from_slice(words.get(number)),
            }
        }
        let mut templates = members.into_iter().map(|(_, template)| template);
        let first = templates.next();
        let merged = first.map(|first| {
            let mut found = first.found;
            templates.for_each(|template| found.merge(template.found));
            Template {
                level: first.level,
                text: text.into(),
                found,
            }
        });
        merged.into_iter().collect()
    }
}

/// Words by number.
#[derive(Default)]
struct Words {
    by_number: Vec<Box<[u8]>>,
    numbers: FixedMap<Box<[u8]>, u32>,
}

impl Words {
    /// The numbers of the words between spaces.
    fn numbers(&mut self, text: &[u8]) -> Vec<u32> {
        text.split(|byte| *byte == b' ')
            .map(|word| self.number(word))
            .collect()
    }

    fn number(&mut self, word: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        let number = cast::low_u32(self.by_number.len());
        self.by_number.push(word.into());
        self.numbers.insert(word.into(), number);
        number
    }

    fn get(&self, number: u32) -> &[u8] {
        &self.by_number[number as usize]
    }

    /// Appends what some words begin and end with, as far as that ends or begins with a character
    /// that separates, and a wildcard between: `path=/a/x`, `path=/a/y` are `path=/a/<_>`.
    fn write_common(&self, numbers: impl Iterator<Item = u32> + Clone, out: &mut Vec<u8>) {
        let separates = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte < 0x80;
        let mut words = numbers.map(|number| self.get(number));
        let Some(first) = words.next() else {
            return;
        };
        let (mut start, mut end) = (first, first);
        for word in words {
            let same = start.iter().zip(word).take_while(|(a, b)| a == b).count();
            start = &start[..same];
            let same = end.iter().rev().zip(word.iter().rev());
            let same = same.take_while(|(a, b)| a == b).count();
            end = &end[end.len() - same..];
        }
        let from = start.iter().rposition(separates).map_or(0, |at| at + 1);
        let to = end.iter().position(separates).unwrap_or(end.len());
        let (start, end) = (&start[..from], &end[to..]);
        // A wildcard that the words share may be in both.
        let start = start.strip_suffix(WILDCARD).unwrap_or(start);
        let end = end.strip_prefix(b">").unwrap_or(end);
        out.extend_from_slice(start);
        out.extend_from_slice(WILDCARD);
        out.extend_from_slice(end);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    fn words() -> impl Strategy<Value = Vec<u32>> {
        proptest::collection::vec(0u32..4, 7)
    }

    proptest! {
        /// The clusters of the rarest words have the same first one as all clusters.
        #[test]
        fn the_first_that_fits_is_found_by_its_rarest_words(texts in proptest::collection::vec(words(), 1..60)) {
            let found = |number| Template { level: Box::default(), text: Box::default(), found: Number(number) };
            let mut clusters: Vec<Cluster<Number>> = Vec::new();
            let mut places = Places::default();
            for (number, words) in (0..).zip(texts) {
                let expected = clusters.iter().position(|cluster| cluster.fits(&words));
                let fits = |at: u32| clusters[at as usize].fits(&words);
                let first = places.first(&words, &mut usize::MAX.clone(), fits);
                prop_assert_eq!(first.map(|at| at as usize), expected);
                match expected {
                    Some(at) => clusters[at].add(words, found(number)),
                    None => {
                        places.add(&words, clusters.len() as u32);
                        clusters.push(Cluster::new(words, found(number)));
                    }
                }
            }
        }
    }

    struct Number(u64);

    impl TemplateCounts for Number {
        fn count(&self) -> u64 {
            self.0
        }

        fn merge(&mut self, other: Number) {
            self.0 += other.0;
        }
    }

    /// Texts of which no two fit, though each shares words with many.
    #[test]
    fn comparisons_end_with_their_bound() {
        let mut places = Places::default();
        let compared = Cell::new(0usize);
        let mut left = 5_000;
        for number in 0..1_000u32 {
            let words = [number % 2, number % 3, number % 5, 7, 7, 7];
            let fits = |_: u32| {
                compared.set(compared.get() + 1);
                false
            };
            assert_eq!(places.first(&words, &mut left, fits), None);
            places.add(&words, number);
        }
        assert_eq!((compared.get(), left), (5_000, 0));
    }
}
