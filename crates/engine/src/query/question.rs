//! What one node is asked by another that puts an answer together.
//!
//! `docs/format/cluster.md` is normative for the bytes.

use std::collections::BTreeMap;
use std::fmt;

use logpond_cluster::question::Reach;
use logpond_cluster::{SegmentShare, Share};
use logpond_record::{Id, Incarnation, SourceId, TimeRange, Timestamp};
use logpond_search::columns::ColumnRequest;
use logpond_search::logql::NamedLabels;
use logpond_search::order::{Direction, Key};
use logpond_search::{Filter, SyntaxError};
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::aggregates::{self, AnyTable};
use super::positions::{self, Positions};
use super::{RowParts, Scope, Search};

/// Version of the encoding.
const VERSION: u64 = 1;

/// Version of a question with an [`Extension`], which stands first. Older nodes refuse it.
const VERSION_EXTENDED: u64 = 2;

/// The longest filter: that of a form in a request.
const FILTER_BYTES_MAX: usize = 1 << 20;

/// The longest name of a field, far above what records may have.
const FIELD_BYTES_MAX: usize = 64 << 10;

/// What is to be read of a share.
pub(super) enum Kind {
    /// Rows in order.
    Rows(Box<Search>),
    /// The number of rows.
    Count(Box<Search>),
    /// Where the context of these matches lies.
    Surroundings(Box<Search>, Vec<Timestamp>),
    /// A table.
    Table(Box<Scope>, Box<dyn AnyTable>),
    /// What the journal has beyond these positions and gets from now on; the share is empty.
    Follow(Box<Search>, Positions),
    /// Which files there are; the share is empty.
    Files,
}

/// A question to a node: what to read, and how.
pub struct Question {
    pub(super) share: Share,
    /// How far the journal files of the share are read that grew when it was planned.
    pub(super) open: Open,
    pub(super) kind: Kind,
}

/// Bytes are no question that this node can answer.
#[derive(Debug)]
pub enum QuestionError {
    /// They are malformed.
    Decode(DecodeError),
    /// Their filter is none.
    Filter(SyntaxError),
}

impl fmt::Display for QuestionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuestionError::Decode(error) => write!(f, "the question cannot be read: {error}"),
            QuestionError::Filter(error) => write!(f, "the question's filter: {}", error.message),
        }
    }
}

impl std::error::Error for QuestionError {}

impl From<DecodeError> for QuestionError {
    fn from(error: DecodeError) -> QuestionError {
        QuestionError::Decode(error)
    }
}

/// How far journal files are read.
pub(super) type Open = BTreeMap<SourceId, Reach>;

/// The request of a question, in the terms of the caller.
pub(super) enum Request<'a> {
    Rows(&'a Search),
    Count(&'a Search),
    Surroundings(&'a Search, &'a [Timestamp]),
    Table(&'a Scope, &'a dyn AnyTable),
    Follow(&'a Search, &'a Positions),
    Files,
}

/// The part of a question that older nodes do not know.
#[derive(Default)]
struct Extension {
    /// The condition that rows around matches have to meet.
    only: Option<Filter>,
    /// Bytes after which values of rows are cut; 0 cuts nothing.
    clip_bytes: usize,
}

impl Extension {
    /// The extension that a request needs, if it needs one.
    fn of(request: &Request<'_>) -> Option<Extension> {
        let (only, clip_bytes) = match request {
            Request::Rows(search) | Request::Follow(search, _) => {
                let only = search.scope.only().filter(|_| search.has_context());
                (only, search.parts.clip_bytes)
            }
            Request::Surroundings(search, _) => (search.scope.only(), 0),
            _ => (None, 0),
        };
        (only.is_some() || clip_bytes > 0).then(|| Extension {
            only: only.cloned(),
            clip_bytes,
        })
    }

    fn encode(&self, out: &mut Encoder) {
        let text = self.only.as_ref().map(Filter::to_string);
        out.bytes(text.unwrap_or_default().as_bytes());
        out.count(self.clip_bytes);
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Extension, QuestionError> {
        let text = from.text(FILTER_BYTES_MAX, "the condition")?;
        let only = match text {
            "" => None,
            text => Some(logpond_search::query::parse(text).map_err(QuestionError::Filter)?),
        };
        let clip_bytes = usize::try_from(from.number("the bytes of values")?).unwrap_or(usize::MAX);
        Ok(Extension { only, clip_bytes })
    }

    /// Puts it into the search that it is of.
    fn extend(self, search: &mut Search) {
        search.parts.clip_bytes = self.clip_bytes;
        if let Some(only) = self.only {
            search.scope = search.scope.copied().bound_to(only);
        }
    }
}

/// The question as a message.
pub(super) fn encode(share: &Share, open: &Open, request: &Request<'_>) -> Vec<u8> {
    let mut out = match Extension::of(request) {
        None => Encoder::new(VERSION),
        Some(extension) => {
            let mut out = Encoder::new(VERSION_EXTENDED);
            extension.encode(&mut out);
            out
        }
    };
    encode_share(share, &mut out);
    encode_open(open, &mut out);
    match request {
        Request::Rows(search) => {
            out.number(0);
            encode_search(search, &mut out);
        }
        Request::Count(search) => {
            out.number(1);
            encode_search(search, &mut out);
        }
        Request::Surroundings(search, matches) => {
            out.number(2);
            encode_search(search, &mut out);
            out.count(matches.len());
            matches.iter().for_each(|time| out.time(*time));
        }
        Request::Table(scope, table) => {
            out.number(3);
            encode_scope(scope, &mut out);
            table.write_question(&mut out);
        }
        Request::Follow(search, positions) => {
            out.number(4);
            encode_search(search, &mut out);
            positions.encode(&mut out);
        }
        Request::Files => out.number(5),
    }
    out.finish()
}

/// Reads what [`encode`] wrote.
pub(super) fn decode(bytes: &[u8]) -> Result<Question, QuestionError> {
    let (mut from, extension) = match Decoder::new(bytes, VERSION_EXTENDED) {
        Ok(mut from) => {
            let extension = Extension::decode(&mut from)?;
            (from, Some(extension))
        }
        Err(_) => (Decoder::new(bytes, VERSION)?, None),
    };
    let share = decode_share(&mut from)?;
    let open = decode_open(&mut from)?;
    let mut kind = match from.number("the kind of question")? {
        0 => Kind::Rows(Box::new(decode_search(&mut from)?)),
        1 => Kind::Count(Box::new(decode_search(&mut from)?)),
        2 => {
            let search = Box::new(decode_search(&mut from)?);
            let count = from.count(8, "the matches")?;
            let matches: Result<_, _> = (0..count).map(|_| from.time("a match")).collect();
            Kind::Surroundings(search, matches?)
        }
        3 => {
            let scope = Box::new(decode_scope(&mut from)?);
            Kind::Table(scope, aggregates::read(&mut from)?)
        }
        4 => {
            let search = Box::new(decode_search(&mut from)?);
            Kind::Follow(search, Positions::decode(&mut from)?)
        }
        5 => Kind::Files,
        _ => return Err(DecodeError::Malformed("the kind of question").into()),
    };
    from.finish()?;
    if let Some(extension) = extension {
        match &mut kind {
            Kind::Rows(search) | Kind::Surroundings(search, _) | Kind::Follow(search, _) => {
                extension.extend(search);
            }
            _ => return Err(DecodeError::Malformed("the extension").into()),
        }
    }
    Ok(Question { share, open, kind })
}

fn encode_share(share: &Share, out: &mut Encoder) {
    out.count(share.segments.len());
    for segment in &share.segments {
        out.wide(segment.id.0);
        out.sources(&segment.excluded);
    }
    out.sources(&share.journal);
    out.sources(&share.sources);
}

fn decode_share(from: &mut Decoder<'_>) -> Result<Share, DecodeError> {
    let mut share = Share::default();
    for _ in 0..from.count(17, "the segments")? {
        share.segments.push(SegmentShare {
            id: Id(from.wide("a segment")?),
            excluded: from.sources("excluded sources")?,
        });
    }
    share.journal = from.sources("the journal's sources")?;
    share.sources = from.sources("the sources")?;
    Ok(share)
}

fn encode_open(open: &Open, out: &mut Encoder) {
    out.count(open.len());
    for (source, reach) in open {
        out.wide(source.incarnation.0);
        out.number(source.sequence);
        out.number(reach.bytes);
        out.wide(reach.last.0);
    }
}

fn decode_open(from: &mut Decoder<'_>) -> Result<Open, DecodeError> {
    let mut open = Open::new();
    for _ in 0..from.count(34, "the files that grow")? {
        let source = SourceId {
            incarnation: Incarnation(from.wide("a file that grows")?),
            sequence: from.number("a file that grows")?,
        };
        let reach = Reach {
            bytes: from.number("a file that grows")?,
            last: Id(from.wide("a file that grows")?),
        };
        open.insert(source, reach);
    }
    Ok(open)
}

pub(super) fn encode_range(range: TimeRange, out: &mut Encoder) {
    out.time(range.from);
    out.time(range.to);
}

pub(super) fn decode_range(from: &mut Decoder<'_>) -> Result<TimeRange, DecodeError> {
    Ok(TimeRange {
        from: from.time("a range")?,
        to: from.time("a range")?,
    })
}

fn encode_scope(scope: &Scope, out: &mut Encoder) {
    out.bytes(scope.text.as_bytes());
    encode_range(scope.range, out);
}

fn decode_scope(from: &mut Decoder<'_>) -> Result<Scope, QuestionError> {
    let text = from.text(FILTER_BYTES_MAX, "the filter")?;
    let range = decode_range(from)?;
    Scope::new(text, range).map_err(QuestionError::Filter)
}

fn encode_search(search: &Search, out: &mut Encoder) {
    encode_scope(&search.scope, out);
    out.number(search.limit.map_or(0, |limit| limit.saturating_add(1)));
    out.flag(search.direction == Direction::Backward);
    out.flag(search.behind.is_some());
    if let Some(behind) = search.behind {
        out.time(behind.time);
        out.wide(behind.id.0);
    }
    out.flag(search.is_followed);
    out.count(search.rows_before);
    out.count(search.rows_after);
    out.flag(search.parts.line);
    out.flag(search.parts.origin);
    out.count(search.within.len());
    search
        .within
        .iter()
        .for_each(|range| encode_range(*range, out));
    positions::encode_regions(&search.shown, out);
    out.flag(search.wants_positions);
    out.flag(search.labels.is_some());
    if let Some(named) = &search.labels {
        encode_names(&named.selected, out);
        encode_names(&named.referred, out);
    }
    out.flag(search.has_places);
    out.number(match (&search.columns, search.has_values) {
        (None, false) => 0,
        (Some(_), _) => 1,
        (None, true) => 2,
    });
    let columns = search.columns.as_deref().unwrap_or_default();
    out.count(columns.len());
    columns.iter().for_each(|column| column.encode(out));
}

fn decode_search(from: &mut Decoder<'_>) -> Result<Search, QuestionError> {
    let mut search = Search::new(decode_scope(from)?);
    search.limit = from.number("the limit")?.checked_sub(1);
    if from.flag("the direction")? {
        search.direction = Direction::Backward;
    }
    if from.flag("the cursor")? {
        search.behind = Some(Key {
            time: from.time("the cursor")?,
            id: Id(from.wide("the cursor")?),
        });
    }
    search.is_followed = from.flag("whether it is followed")?;
    let rows = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    search.rows_before = rows(from.number("the rows before")?);
    search.rows_after = rows(from.number("the rows after")?);
    search.parts = RowParts {
        line: from.flag("the parts of rows")?,
        origin: from.flag("the parts of rows")?,
        clip_bytes: 0,
    };
    for _ in 0..from.count(16, "the ranges")? {
        search.within.push(decode_range(from)?);
    }
    search.shown = positions::decode_regions(from)?;
    search.wants_positions = from.flag("whether positions are wanted")?;
    if from.flag("whether rows are lines")? {
        let selected = decode_names(from)?;
        let referred = decode_names(from)?;
        search.labels = Some(Box::new(NamedLabels { selected, referred }));
    }
    search.has_places = from.flag("whether lines have their places")?;
    let form = from.number("the form of rows")?;
    if form > 2 {
        return Err(DecodeError::Malformed("the form of rows").into());
    }
    let mut columns = Vec::new();
    for _ in 0..from.count(2, "the columns")? {
        columns.push(ColumnRequest::decode(from)?);
    }
    search.columns = (form == 1).then(|| columns.into());
    search.has_values = form == 2;
    Ok(search)
}

pub(super) fn encode_names(names: &[Box<str>], out: &mut Encoder) {
    out.count(names.len());
    names.iter().for_each(|name| out.bytes(name.as_bytes()));
}

pub(super) fn decode_names(from: &mut Decoder<'_>) -> Result<Vec<Box<str>>, DecodeError> {
    let mut names = Vec::new();
    for _ in 0..from.count(1, "the labels")? {
        names.push(from.text(FIELD_BYTES_MAX, "a label")?.into());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::super::positions::Region;
    use super::*;
    use logpond_search::aggregate::{
        FieldStats, FieldTypes, HistogramSpec, LabelValues, Streams, StreamsRequest, Top,
    };
    use logpond_search::columns::ColumnKind;
    use logpond_search::metric::{Leaf, RangeTable};
    use logpond_segment::sources::SourceSet;
    use std::sync::Arc;

    fn share() -> Share {
        let source = |sequence| SourceId {
            incarnation: Incarnation(3),
            sequence,
        };
        Share {
            segments: vec![SegmentShare {
                id: Id(9),
                excluded: SourceSet::from_iter([source(1)]),
            }],
            journal: SourceSet::from_iter([source(5)]),
            sources: SourceSet::from_iter([source(5), source(0)]),
        }
    }

    fn search() -> Search {
        let column = ColumnRequest {
            name: "a b".into(),
            kind: ColumnKind::Float,
        };
        let range = TimeRange {
            from: Timestamp(-5),
            to: Timestamp::MAX,
        };
        let mut search = Search::new(Scope::new("a status>5", range).unwrap());
        search.limit = Some(0);
        search.direction = Direction::Backward;
        search.behind = Some(Key {
            time: Timestamp(4),
            id: Id::MAX,
        });
        (search.rows_before, search.rows_after) = (2, 300);
        search.parts.origin = true;
        search.shown = vec![Region::arrived(Id(6))];
        search.labels = Some(Box::new(NamedLabels {
            selected: vec!["app".into()],
            referred: vec!["status".into()],
        }));
        search.has_places = true;
        search.columns = Some([column].into());
        search.narrowed(vec![range])
    }

    #[test]
    fn a_question_comes_back() {
        let search = search();
        let reach = Reach {
            bytes: 300,
            last: Id(8),
        };
        let source = share().journal.iter().next().unwrap();
        let open = Open::from([(source, reach)]);
        let request = Request::Surroundings(&search, &[Timestamp(7)]);
        let bytes = encode(&share(), &open, &request);
        let question = decode(&bytes).unwrap();
        assert_eq!((question.share, question.open), (share(), open));
        let Kind::Surroundings(found, matches) = question.kind else {
            panic!("another kind");
        };
        assert_eq!(matches, [Timestamp(7)]);
        assert_eq!(format!("{found:?}"), format!("{search:?}"));
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_question_for_cut_rows_comes_back() {
        let mut search = search();
        search.parts.clip_bytes = 2048;
        let bytes = encode(&share(), &Open::new(), &Request::Rows(&search));
        let Kind::Rows(found) = decode(&bytes).unwrap().kind else {
            panic!("another kind");
        };
        assert_eq!(format!("{found:?}"), format!("{search:?}"));
    }

    #[test]
    fn a_restricted_question_comes_back() {
        let of_team = super::super::Restriction::of_condition("team=payments").unwrap();
        let search = search();
        let search = search.in_scope(search.scope.within(&of_team).unwrap());
        let request = Request::Surroundings(&search, &[Timestamp(7)]);
        let bytes = encode(&share(), &Open::new(), &request);
        let Kind::Surroundings(found, _) = decode(&bytes).unwrap().kind else {
            panic!("another kind");
        };
        let parts = |filter: Filter| -> Vec<String> {
            let Filter::And(parts) = filter else {
                panic!("{filter}")
            };
            let mut texts: Vec<String> = parts.iter().map(Filter::to_string).collect();
            texts.sort();
            texts
        };
        assert_eq!(
            parts(found.scope.surroundings()),
            parts(search.scope.surroundings())
        );
        assert_eq!(
            parts(found.scope.filter.clone()),
            parts(search.scope.filter.clone())
        );
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn tables_come_back() {
        let range = TimeRange::ALL;
        let histogram = |by: Option<Box<str>>| {
            let step_ns = i64::MAX;
            HistogramSpec { range, step_ns, by }.empty().unwrap()
        };
        let streams = StreamsRequest {
            by: Some(vec!["a".into()]),
            steps: Some((Timestamp(-4), 5)),
        };
        let tables: [Box<dyn AnyTable>; 9] = [
            Box::new(Top::new("a.b")),
            Box::new(histogram(None)),
            Box::new(histogram(Some("level".into()))),
            Box::new(FieldStats::new()),
            Box::new(LabelValues::new("a")),
            Box::new(Streams::new(StreamsRequest::default())),
            Box::new(Streams::new(streams)),
            Box::new(RangeTable::new(Arc::new(numbers()))),
            Box::new(FieldTypes::new(true)),
        ];
        for table in tables {
            let scope = Scope::all(range);
            let question = |table| encode(&share(), &Open::new(), &Request::Table(&scope, table));
            let bytes = question(&*table);
            let Kind::Table(_, found) = decode(&bytes).unwrap().kind else {
                panic!("another kind");
            };
            assert_eq!(question(&*found), bytes);
        }
    }

    /// A table of numbers.
    fn numbers() -> Leaf {
        let text = r#"sum by (a) (rate({b="c"} |= "d" | json [5m] offset -1h))"#;
        let Ok(logpond_search::logql::Query::Metric(metric)) = logpond_search::logql::parse(text)
        else {
            panic!("no query for numbers");
        };
        let times = logpond_search::metric::Times::range(Timestamp(-5), Timestamp(9), 3).unwrap();
        let plan = logpond_search::metric::Plan::range(metric, times, 7).unwrap();
        Leaf::new(plan.leaves()[0].spec().clone()).unwrap()
    }

    #[test]
    fn a_follower_comes_back() {
        let mut positions = Positions::default();
        positions.finish(&share().sources);
        let bytes = encode(
            &Share::default(),
            &Open::new(),
            &Request::Follow(&search(), &positions),
        );
        let Kind::Follow(_, found) = decode(&bytes).unwrap().kind else {
            panic!("another kind");
        };
        assert_eq!(found, positions);
    }

    #[test]
    fn a_filter_that_is_none_is_named() {
        let mut scope = Scope::all(TimeRange::ALL);
        scope.text = "(".into();
        let bytes = encode(
            &share(),
            &Open::new(),
            &Request::Table(&scope, &FieldStats::new()),
        );
        assert!(matches!(decode(&bytes), Err(QuestionError::Filter(_))));
    }
}
