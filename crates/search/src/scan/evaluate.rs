//! A filter compiled to select rows of a block, cheap conditions first.

use logpond_record::{TimeRange, Timestamp, Value};
use logpond_segment::file::{Directory, ReadError};
use logpond_segment::tokens::{self, BlockSet};

use super::by_column::{Decisions, RowPartition};
use super::by_computed::select_by_computed;
use super::group::GroupScan;
use super::templates::parts_that_may_vary;
use super::text::{Place, select_by_text, split_by_message};
use crate::field::{FieldMatcher, Target};
use crate::journal::{self, names};
use crate::label;
use crate::literal::{RequiredLiterals, TokenPart, TokenQuery, required, token_query};
use crate::matcher::Scratch;
use crate::pattern::Finder;
use crate::query::{FieldFilter, FieldTest, Filter, Pattern, RULE_FIELD, SyntaxError};

/// The shortest text worth looking for before an expression that requires it.
const REQUIRED_BYTES_MIN: usize = 3;

/// The most texts of a conjunction or a choice that are looked for before an expression.
const REQUIRED_TEXTS_MAX: usize = 4;

/// A compiled filter and a range of time. It is shared by the scans of all row groups.
pub struct Evaluator {
    root: Node,
    /// Number of conditions; each has a place in a scan's memory of decisions.
    fields: usize,
    tokens: TokenQuery,
    range: TimeRange,
    extent: Extent,
}

/// The rows of a segment that a filter wants, as far as that is known without looking at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All.
    All,
    /// All but results of recording rules.
    AllButResults,
    /// Some.
    Some,
}

impl Extent {
    /// That of a filter.
    pub fn of(filter: &Filter) -> Extent {
        if *filter == Filter::All {
            Extent::All
        } else if *filter == Filter::no_rule_results() {
            Extent::AllButResults
        } else {
            Extent::Some
        }
    }

    /// True if every row that this directory tells of is wanted.
    pub fn is_all(self, directory: &Directory) -> bool {
        match self {
            Extent::All => true,
            Extent::AllButResults => !directory.counts.fields.contains_key(RULE_FIELD),
            Extent::Some => false,
        }
    }
}

enum Node {
    All,
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    /// A text and where it is looked for, with its number among the texts.
    Text(Finder, Place, usize),
    /// An expression, with its number among the texts, behind the texts that it requires.
    Narrowed(Finder, Place, usize),
    /// A condition on a field, with its place in the memory of decisions.
    Field(Box<FieldMatcher>, usize),
    /// A condition on what entries have under a name.
    Entry(Box<EntryNode>),
}

/// A condition on what entries have under a name, by where that is.
struct EntryNode {
    of_journals: Node,
    of_entries: Node,
    /// The name, the condition on what other records have, and its place in the memory of decisions.
    name: Box<str>,
    of_others: FieldMatcher,
    number: usize,
}

impl Evaluator {
    /// Compiles a filter; fails as [`crate::Matcher::new`] does.
    pub fn new(filter: &Filter, range: TimeRange) -> Result<Evaluator, SyntaxError> {
        // The matcher explains what is wrong with a filter.
        crate::Matcher::new(filter)?;
        let mut fields = 0;
        let root = compile(filter, &mut fields)
            .ok_or_else(|| SyntaxError::new("", 0..0, "the filter does not compile".into()))?;
        Ok(Evaluator {
            root,
            fields,
            tokens: token_query(filter, true),
            extent: Extent::of(filter),
            range,
        })
    }

    /// The range of event times.
    pub fn range(&self) -> TimeRange {
        self.range
    }

    /// True if the filter wants every row of the range that this directory tells of.
    pub fn is_all(&self, directory: &Directory) -> bool {
        self.extent.is_all(directory)
    }

    /// The parts of tokens that the token index is asked for.
    pub(super) fn token_parts(&self) -> Vec<TokenPart> {
        let mut parts = self.tokens.parts();
        self.root.add_varying_parts(&mut parts);
        parts
    }

    pub(super) fn new_decisions(&self) -> Vec<Decisions> {
        (0..self.fields).map(|_| Decisions::default()).collect()
    }

    /// The blocks that the token index does not rule out.
    pub(super) fn candidates(&self, scan: &mut GroupScan<'_>) -> Result<BlockSet, ReadError> {
        candidates(&self.tokens, scan)
    }

    /// The rows among `rows` that the filter wants.
    pub(super) fn select(
        &self,
        scan: &mut GroupScan<'_>,
        rows: Vec<u32>,
    ) -> Result<Vec<u32>, ReadError> {
        select(&self.root, scan, rows)
    }
}

fn compile(filter: &Filter, fields: &mut usize) -> Option<Node> {
    let mut nodes = |parts: &[Filter]| {
        parts
            .iter()
            .map(|p| compile(p, fields))
            .collect::<Option<Vec<_>>>()
    };
    Some(match filter {
        Filter::All => Node::All,
        Filter::And(parts) => {
            let mut parts = nodes(parts)?;
            parts.sort_by_key(Node::cost);
            Node::And(parts)
        }
        Filter::Or(parts) => {
            let mut parts = nodes(parts)?;
            parts.sort_by_key(Node::cost);
            Node::Or(parts)
        }
        Filter::Not(inner) => Node::Not(Box::new(compile(inner, fields)?)),
        Filter::Text(pattern) => text_node(pattern, Place::LineOrMessage, fields)?,
        Filter::Field(FieldFilter {
            name,
            test: FieldTest::Contains(pattern),
        }) if Target::new(name) == Target::Line => text_node(pattern, Place::Line, fields)?,
        Filter::Field(field) => {
            let matcher = FieldMatcher::new(field).ok()?;
            match matcher.target().clone() {
                Target::Entry(name) => entry_node(matcher, name, fields)?,
                _ => field_node(matcher, fields),
            }
        }
    })
}

fn field_node(matcher: FieldMatcher, fields: &mut usize) -> Node {
    *fields += 1;
    Node::Field(Box::new(matcher), *fields - 1)
}

fn entry_node(matcher: FieldMatcher, name: Box<str>, fields: &mut usize) -> Option<Node> {
    let exact = matcher.at(Target::Field(name.clone()));
    let of_entries = field_node(exact, fields);
    if !names::may_be_another(&name) {
        return Some(of_entries);
    }
    *fields += 1;
    Some(Node::Entry(Box::new(EntryNode {
        number: *fields - 1,
        of_journals: compile(&journal::of_journals(), fields)?,
        of_entries,
        name,
        of_others: matcher,
    })))
}

fn text_node(pattern: &Pattern, place: Place, fields: &mut usize) -> Option<Node> {
    let finder = Finder::new(pattern).ok()?;
    let mut next = || {
        *fields += 1;
        *fields - 1
    };
    let required = match pattern {
        Pattern::Regex { .. } => required_texts(&required(pattern), place, &mut next),
        Pattern::Substring { .. } => None,
    };
    Some(match required {
        Some(texts) => Node::And(vec![texts, Node::Narrowed(finder, place, next())]),
        None => Node::Text(finder, place, next()),
    })
}

/// The condition that a line has the texts that an expression requires, if they are few and long
/// enough to be found faster than the expression.
fn required_texts(
    required: &RequiredLiterals,
    place: Place,
    next: &mut impl FnMut() -> usize,
) -> Option<Node> {
    let text = |text: &[u8], case_insensitive: bool, next: &mut dyn FnMut() -> usize| {
        let pattern = Pattern::substring(text, case_insensitive);
        let finder = Finder::new(&pattern).ok()?;
        (text.len() >= REQUIRED_BYTES_MIN).then(|| Node::Text(finder, place, next()))
    };
    match required {
        RequiredLiterals::Nothing => None,
        RequiredLiterals::Literal(bytes) => text(bytes, false, next),
        RequiredLiterals::Folded(bytes) => text(bytes, true, next),
        RequiredLiterals::And(parts) => {
            let known = parts
                .iter()
                .filter_map(|part| required_texts(part, place, next));
            let known: Vec<Node> = known.take(REQUIRED_TEXTS_MAX).collect();
            (!known.is_empty()).then_some(Node::And(known))
        }
        RequiredLiterals::Or(parts) if parts.len() <= REQUIRED_TEXTS_MAX => {
            let all = parts.iter().map(|part| required_texts(part, place, next));
            all.collect::<Option<_>>().map(Node::Or)
        }
        RequiredLiterals::Or(_) => None,
    }
}

impl Node {
    /// A column costs less than rendered lines.
    fn cost(&self) -> u32 {
        match self {
            Node::All => 0,
            Node::Field(matcher, ..)
                if matches!(
                    matcher.target(),
                    Target::Field(_) | Target::Label(_) | Target::Computed(_) | Target::Time
                ) =>
            {
                1
            }
            Node::And(parts) | Node::Or(parts) => parts.iter().map(Node::cost).max().unwrap_or(0),
            Node::Not(inner) => inner.cost(),
            Node::Entry(_) => 1,
            Node::Field(..) => 2,
            Node::Text(..) => 3,
            Node::Narrowed(..) => 4,
        }
    }
}

impl Node {
    /// Adds the parts of tokens that are looked for because templates leave out tokens with them.
    fn add_varying_parts(&self, out: &mut Vec<TokenPart>) {
        match self {
            Node::And(parts) | Node::Or(parts) => {
                parts.iter().for_each(|part| part.add_varying_parts(out));
            }
            Node::Not(inner) => inner.add_varying_parts(out),
            Node::Text(finder, ..) => {
                for part in parts_that_may_vary(finder).into_iter().flatten() {
                    if !out.contains(&part) {
                        out.push(part);
                    }
                }
            }
            Node::All | Node::Narrowed(..) | Node::Field(..) | Node::Entry(_) => {}
        }
    }
}

fn candidates(query: &TokenQuery, scan: &mut GroupScan<'_>) -> Result<BlockSet, ReadError> {
    let blocks = scan.blocks_count();
    match query {
        TokenQuery::Any => Ok(BlockSet::all(blocks)),
        TokenQuery::Token(token) if tokens::may_be_time_fraction(token) => {
            Ok(BlockSet::all(blocks))
        }
        TokenQuery::Token(token) => scan.reader.look_up(token),
        TokenQuery::Part(part) => blocks_with_part(part, scan),
        TokenQuery::And(parts) => {
            let mut set = BlockSet::all(blocks);
            // Whole tokens first: they need no words.
            let is_token = |part: &&TokenQuery| matches!(part, TokenQuery::Token(_));
            let (tokens, others): (Vec<_>, Vec<_>) = parts.iter().partition(is_token);
            for part in tokens.into_iter().chain(others) {
                set.intersect(&candidates(part, scan)?);
                if set.is_empty() {
                    break;
                }
            }
            Ok(set)
        }
        TokenQuery::Or(parts) => {
            let mut set = BlockSet::none(blocks);
            for part in parts {
                set.unite(&candidates(part, scan)?);
            }
            Ok(set)
        }
    }
}

/// The blocks with a token that holds a part.
fn blocks_with_part(part: &TokenPart, scan: &mut GroupScan<'_>) -> Result<BlockSet, ReadError> {
    let blocks = scan.blocks_count();
    let everywhere = || Ok(BlockSet::all(blocks));
    let upper = part.text.to_ascii_uppercase();
    let written = if part.folded { &upper } else { &*part.text };
    if tokens::may_be_time_fraction(written) || written == b"Z" {
        return everywhere();
    }
    if tokens::is_id(&part.text) {
        return blocks_with_id_part(part, scan);
    }
    match scan.hits()? {
        Some(hits) => look_up_all(hits.of(part), BlockSet::none(blocks), scan),
        None => everywhere(),
    }
}

/// The same for a part that may be of an id. Ids are not among the words.
fn blocks_with_id_part(part: &TokenPart, scan: &mut GroupScan<'_>) -> Result<BlockSet, ReadError> {
    let all = BlockSet::all(scan.blocks_count());
    let mut set = scan.reader.blocks_with_id_part(&part.text)?;
    if !part.folded && part.text.len() > tokens::ID_BYTES_SHORT_MAX {
        // A long one is whole, or within one that is longer still.
        let mut long = scan.blocks_with_longer_ids(part.text.len());
        long.unite(&scan.reader.look_up(&part.text)?);
        match &mut set {
            Some(set) => set.intersect(&long),
            None => set = Some(long),
        }
    }
    let Some(set) = set else {
        return Ok(all);
    };
    match scan.hits()? {
        Some(hits) => look_up_all(hits.of(part), set, scan),
        None => Ok(all),
    }
}

/// The blocks of `set` and those with one of the words.
fn look_up_all(
    words: Option<&[Box<[u8]>]>,
    mut set: BlockSet,
    scan: &mut GroupScan<'_>,
) -> Result<BlockSet, ReadError> {
    let Some(words) = words else {
        return Ok(BlockSet::all(scan.blocks_count()));
    };
    for word in words {
        set.unite(&scan.reader.look_up(word)?);
    }
    Ok(set)
}

fn select(node: &Node, scan: &mut GroupScan<'_>, rows: Vec<u32>) -> Result<Vec<u32>, ReadError> {
    if rows.is_empty() {
        return Ok(rows);
    }
    match node {
        Node::All => Ok(rows),
        Node::And(parts) => parts
            .iter()
            .try_fold(rows, |rows, part| select(part, scan, rows)),
        Node::Or(parts) => {
            let mut wanted = Vec::new();
            let mut rest = rows;
            for part in parts {
                let found = select(part, scan, rest.clone())?;
                subtract(&mut rest, &found);
                wanted.extend(found);
            }
            wanted.sort_unstable();
            Ok(wanted)
        }
        Node::Not(inner) => {
            let mut rest = rows.clone();
            subtract(&mut rest, &select(inner, scan, rows)?);
            Ok(rest)
        }
        Node::Text(finder, place, number) => select_by_text(finder, *place, *number, scan, rows),
        Node::Narrowed(finder, Place::Line, number) => {
            select_by_text(finder, Place::Line, *number, scan, rows)
        }
        Node::Narrowed(finder, place, number) => {
            let (mut wanted, rest) = scan.split_by_template((*number, finder), rows)?;
            let (found, rest) = split_by_message(scan, rest, |text| finder.is_match(text))?;
            wanted.extend(found);
            wanted.extend(select_by_text(finder, *place, *number, scan, rest)?);
            wanted.sort_unstable();
            Ok(wanted)
        }
        Node::Field(matcher, number) => select_by_field(matcher, *number, scan, rows),
        Node::Entry(node) => select_by_entry(node, scan, rows),
    }
}

fn select_by_entry(
    node: &EntryNode,
    scan: &mut GroupScan<'_>,
    mut rows: Vec<u32>,
) -> Result<Vec<u32>, ReadError> {
    let entries = select(&node.of_journals, scan, rows.clone())?;
    subtract(&mut rows, &entries);
    let mut wanted = select(&node.of_entries, scan, entries)?;
    if !rows.is_empty() {
        let meant = scan.fields_by(|field| names::place(&node.name, field));
        wanted.extend(select_by_first(
            &meant,
            &node.of_others,
            node.number,
            scan,
            rows,
        )?);
        wanted.sort_unstable();
    }
    Ok(wanted)
}

/// Takes the rows of `found` out of `rows`; both are sorted.
fn subtract(rows: &mut Vec<u32>, found: &[u32]) {
    if found.is_empty() {
        return;
    }
    let mut next = 0;
    rows.retain(|row| {
        while found.get(next).is_some_and(|found| found < row) {
            next += 1;
        }
        found.get(next) != Some(row)
    });
}

fn select_by_field(
    matcher: &FieldMatcher,
    number: usize,
    scan: &mut GroupScan<'_>,
    mut rows: Vec<u32>,
) -> Result<Vec<u32>, ReadError> {
    match matcher.target() {
        Target::Field(name) if !(matcher.looks_at_text() && scan.mixes_numbers(name)) => {
            select_by_column(name, matcher, number, scan, rows)
        }
        Target::Label(label) => {
            let meant = scan.fields_by(|field| label::place(label, field));
            select_by_first(&meant, matcher, number, scan, rows)
        }
        Target::Computed(label) => select_by_computed(*label, matcher, number, scan, rows),
        Target::Time => {
            let times = scan.times()?;
            rows.retain(|row| matcher.matches_instant(Timestamp(times[*row as usize])));
            Ok(rows)
        }
        // Everything else: through the record, as the matcher does it.
        Target::Field(_)
        | Target::Received
        | Target::Id
        | Target::TimeSource
        | Target::Message
        | Target::Line
        | Target::Entry(_) => select_by_record(matcher, scan, rows),
    }
}

/// The rows where the first of some fields that they have is wanted; a null is passed over.
fn select_by_first(
    fields: &[&str],
    matcher: &FieldMatcher,
    number: usize,
    scan: &mut GroupScan<'_>,
    rows: Vec<u32>,
) -> Result<Vec<u32>, ReadError> {
    if matcher.looks_at_text() && fields.iter().any(|name| scan.mixes_numbers(name)) {
        return select_by_record(matcher, scan, rows);
    }
    let (mut wanted, mut rest) = (Vec::new(), rows);
    for &name in fields {
        if rest.is_empty() {
            break;
        }
        let mut without = match scan.directory.schema.column(name) {
            Some(column) => {
                let is_wanted = |value: &Value<'_>| matcher.matches_value(Some(value));
                let parted = scan.part_by_column(column, number, rest, is_wanted)?;
                if wanted.is_empty() {
                    wanted = parted.wanted;
                } else {
                    wanted.extend(parted.wanted)
                }
                parted.without
            }
            None => rest,
        };
        if !without.is_empty() && scan.may_be_elsewhere(name) {
            let mut nulls = Vec::new();
            without = scan.visit_more(name, &without, |row, value| {
                if *value == Value::Null {
                    nulls.push(row);
                } else if matcher.matches_value(Some(value)) {
                    wanted.push(row);
                }
            })?;
            without.extend(nulls);
            without.sort_unstable();
        }
        rest = without;
    }
    wanted.sort_unstable();
    Ok(wanted)
}

/// The wanted rows through their records, as the matcher decides.
pub(super) fn select_by_record(
    matcher: &FieldMatcher,
    scan: &mut GroupScan<'_>,
    mut rows: Vec<u32>,
) -> Result<Vec<u32>, ReadError> {
    scan.with_view(|view, ids| {
        let mut scratch = Scratch::new();
        rows.retain(|row| {
            let row = *row as usize;
            let id = ids.of_row(view.rows(), row);
            scratch.start_record();
            matcher.matches(&view.record(row, id), &mut scratch)
        });
        rows
    })
}

fn select_by_column(
    name: &str,
    matcher: &FieldMatcher,
    number: usize,
    scan: &mut GroupScan<'_>,
    rows: Vec<u32>,
) -> Result<Vec<u32>, ReadError> {
    let RowPartition {
        mut wanted,
        without,
    } = match scan.directory.schema.column(name) {
        Some(column) => {
            let is_wanted = |value: &Value<'_>| matcher.matches_value(Some(value));
            scan.part_by_column(column, number, rows, is_wanted)?
        }
        None => RowPartition::without_value(rows),
    };
    if without.is_empty() || !scan.may_be_elsewhere(name) {
        return Ok(wanted);
    }
    let without = scan.visit_more(name, &without, |row, value| {
        if matcher.matches_value(Some(value)) {
            wanted.push(row);
        }
    })?;
    if matcher.matches_value(Some(&Value::Null)) {
        wanted.extend(scan.rows_with_null(name, &without)?);
    }
    wanted.sort_unstable();
    Ok(wanted)
}

impl<'a> GroupScan<'a> {
    /// The fields of the row group that have a place, in the order of these; none behind one that every row
    /// has.
    pub(super) fn fields_by<P: Ord>(&self, place: impl Fn(&'a str) -> Option<P>) -> Vec<&'a str> {
        let names = self.directory.counts.fields.keys();
        let meant = names.filter_map(|name| Some((place(name)?, &**name)));
        let mut meant: Vec<_> = meant.collect();
        meant.sort_unstable();
        let schema = &self.directory.schema;
        let values = |name: &str| {
            let column = schema.column(name);
            column.map_or(0, |column| self.reader.field_values(column))
        };
        meant.retain(|(_, name)| values(name) > 0 || self.may_be_elsewhere(name));
        let rows = self.entry().rows() as u64;
        if let Some(last) = meant.iter().position(|(_, name)| values(name) == rows) {
            meant.truncate(last + 1);
        }
        meant.into_iter().map(|(_, name)| name).collect()
    }

    /// Whether a column holds whole numbers and fractions alike, so that it does not tell which a
    /// row had; the row's shape does.
    pub(super) fn mixes_numbers(&self, name: &str) -> bool {
        let schema = &self.directory.schema;
        let (Some(column), Some(count)) =
            (schema.column(name), self.directory.counts.fields.get(name))
        else {
            return false;
        };
        count.may_mix(schema.columns[column].kind)
    }

    /// Whether a field may have values outside its column: in the overflow column, or as a null
    /// of a shape.
    pub(super) fn may_be_elsewhere(&self, name: &str) -> bool {
        let schema = &self.directory.schema;
        let Some(count) = self.directory.counts.fields.get(name) else {
            return false;
        };
        let beside = match schema.column(name) {
            Some(column) => count.beside(schema.columns[column].kind),
            None => count.total(),
        };
        beside + count.shape_null > 0
    }
}
