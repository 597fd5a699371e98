//! Shapes of records of several lines: the traces of runtimes, and documents in logs.
//!
//! Invariants:
//! - A [`State`] depends on the lines of its record only.
//! - A shape is a table. Its rows are tried in order; the first one that fits a line decides.
//! - A line that only may belong to the record is held. A later line that certainly belongs to it takes
//!   the held lines along; any other line ends the record before them.
//!
//! Sources: the output of each runtime and the documentation of its printer, named in each table.

mod beam;
mod blocks;
mod crash;
mod documents;
mod go;
mod heads;
mod marks;
mod numbered;
mod python;
mod reports;
mod ruby;
mod rust;
mod servers;
mod vm;

pub(super) use beam::is_report;
pub(super) use heads::{APT_END, is_object};
pub(super) use marks::visible;
use marks::{is_blank, is_closer, is_indented, is_opened};

/// The place of a record in its shape. Each shape uses the stages that it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Plain text, or a line that names where the next ones come from.
    #[default]
    Text,
    /// Behind empty lines.
    Gap,
    /// Behind the mark below the place of an error.
    Marked,
    /// The error is named; its message may go on.
    Named,
    /// The message goes on with lines that only may belong to it.
    Loose,
    /// Calls.
    Frames,
    /// Errors that are listed, each with its place.
    Listed,
    /// Behind the sentence that announces another trace.
    Chained,
    /// Lines up to the end of the shape.
    Body,
    /// The shape is complete.
    Done,
}

/// State of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Index in [`SHAPES`] plus one; 0 is text without a shape.
    shape: u8,
    stage: Stage,
    /// True if a bracket at the end of a line is open.
    is_open: bool,
    /// A number that the shape has from its first line: see [`Shape::detail`].
    detail: u32,
}

/// A line and its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It belongs to the record.
    Take(State),
    /// It belongs to the record if a later line takes it along.
    Hold(State),
    /// It does not belong to the record.
    Refuse,
}

/// A test of a line.
#[derive(Clone, Copy)]
enum Test {
    Starts(&'static str),
    Is(&'static str),
    Blank,
    /// It begins with a blank, and is not empty.
    Indented,
    /// It is not empty.
    Any,
    By(fn(&[u8]) -> bool),
    /// The same with the number of the shape.
    With(fn(&[u8], u32) -> bool),
}

/// Effect of a line that a row fits.
#[derive(Clone, Copy)]
enum Next {
    Take(Stage),
    Hold(Stage),
    /// Held, and one less of the number of the shape.
    Count(Stage),
    /// Taken; the record is text without a shape from then on.
    Leave,
    /// Taken; the number of the shape is that of this line.
    Number(Stage),
    Refuse,
}

/// A row: the stages that it is for, its test, its effect.
struct Row(&'static [Stage], Test, Next);

/// A line that a shape begins with.
struct Start(Test, Stage, Bond);

/// The bond of a line that a shape begins with to the text before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bond {
    /// It may belong to the record before it, as a trace belongs to the message above it.
    Near,
    /// It begins a record, whatever is before it: the end of a program, an entry of a log.
    Own,
}

/// A line that a shape begins with behind a line of text, which belongs to the same record.
struct Behind(Test, Next);

/// Lines of one runtime or kind of document.
struct Shape {
    starts: &'static [Start],
    behind: &'static [Behind],
    rows: &'static [Row],
    /// The number of the shape by the line that it begins with.
    detail: Option<fn(&[u8]) -> u32>,
    /// True if empty lines may be between it and the text that it belongs to.
    crosses_gaps: bool,
}

/// All shapes; the first one that fits a line has it.
const SHAPES: [&Shape; 35] = [
    &heads::OBJECT,
    &heads::APT,
    &heads::BANNER,
    // Python's have the same words and a colon.
    &blocks::NIM,
    &python::TRACEBACK,
    &python::FAULT,
    &go::PANIC,
    &go::RACE,
    &go::RECOVERY,
    &rust::PANIC,
    &ruby::ERROR,
    &numbered::TRACE,
    &beam::TERMINATION,
    &beam::REPORT,
    &vm::DUMP,
    &vm::POWERSHELL,
    &vm::OVERFLOW,
    &vm::TRACE,
    &crash::SANITIZER,
    &crash::COMMENTS,
    &crash::CRASH,
    &heads::LAST_WORDS,
    &servers::SLOW_LOG,
    &servers::JAVA_LOGGING,
    &servers::MONGODB,
    &blocks::FLUTTER,
    &blocks::CLOJURE,
    &reports::INNODB,
    &reports::R,
    &reports::CONCISE,
    &reports::HASKELL,
    &reports::GRADLE,
    &documents::XML,
    &documents::FRAMED,
    &documents::BOX,
];

/// Rows of text without a shape, behind those of the shapes. `Body` is text with indented lines, `Listed` the
/// same behind an empty line: a block may have some.
const TEXT: &[Row] = &[
    Row(
        &[Stage::Text, Stage::Body, Stage::Listed],
        Test::Indented,
        Next::Take(Stage::Body),
    ),
    Row(
        &[Stage::Text, Stage::Body, Stage::Gap, Stage::Listed],
        Test::Starts("Caused by:"),
        Next::Take(Stage::Text),
    ),
    Row(
        &[Stage::Text, Stage::Body, Stage::Listed],
        Test::By(marks::is_continuation),
        Next::Take(Stage::Text),
    ),
    // Julia's errors that another one was raised for.
    Row(
        &[Stage::Gap],
        Test::Starts("caused by: "),
        Next::Take(Stage::Text),
    ),
    Row(&[Stage::Text], Test::Blank, Next::Hold(Stage::Gap)),
    Row(&[Stage::Body], Test::Blank, Next::Hold(Stage::Listed)),
];

impl Test {
    fn fits(&self, line: &[u8], detail: u32) -> bool {
        match self {
            Test::Starts(start) => line.starts_with(start.as_bytes()),
            Test::Is(text) => line == text.as_bytes(),
            Test::Blank => is_blank(line),
            Test::Indented => is_indented(line) && !is_blank(line),
            Test::Any => !is_blank(line),
            Test::By(test) => test(line),
            Test::With(test) => test(line, detail),
        }
    }
}

/// State of a record from its first line.
pub(super) fn begin(line: &[u8]) -> State {
    let line = visible(line);
    let found = SHAPES.iter().zip(1..).find_map(|(shape, number)| {
        let start = shape.starts.iter().find(|start| start.0.fits(line, 0))?;
        Some((number, start.1, shape.detail))
    });
    let (shape, stage, detail) = found.unwrap_or_default();
    State {
        shape,
        stage,
        is_open: is_opened(line),
        detail: detail.map_or(0, |detail| detail(line)),
    }
}

/// True if a record has a shape.
pub(super) fn is_shaped(state: State) -> bool {
    state.shape != 0 || state.is_open
}

/// True if a line begins a record, whatever is before it.
pub(super) fn is_own(line: &[u8]) -> bool {
    let line = visible(line);
    let mut starts = SHAPES.iter().flat_map(|shape| shape.starts);
    starts.any(|start| start.2 == Bond::Own && start.0.fits(line, 0))
}

/// Effect of a line on its record.
pub(super) fn continued(state: State, line: &[u8]) -> Step {
    let line = visible(line);
    if state.is_open && is_closer(line) {
        return Step::Take(State {
            is_open: is_opened(line),
            ..state
        });
    }
    let next = match state.shape {
        0 => in_text(state, line),
        number => {
            let rows = shape(number).rows;
            row(rows, state, line).map(|next| (state, next))
        }
    };
    let Some((state, next)) = next else {
        return Step::Refuse;
    };
    let is_open = state.is_open || is_opened(line);
    let at = |stage| State {
        stage,
        is_open,
        ..state
    };
    match next {
        Next::Take(stage) => Step::Take(at(stage)),
        Next::Hold(stage) => Step::Hold(at(stage)),
        Next::Count(stage) if state.detail > 0 => Step::Hold(State {
            detail: state.detail - 1,
            ..at(stage)
        }),
        Next::Leave => Step::Take(State {
            is_open,
            ..State::default()
        }),
        Next::Number(stage) => Step::Take(State {
            detail: shape(state.shape).detail.map_or(0, |detail| detail(line)),
            ..at(stage)
        }),
        Next::Count(_) | Next::Refuse => Step::Refuse,
    }
}

/// The shape of a number that is not 0.
fn shape(number: u8) -> &'static Shape {
    SHAPES[usize::from(number) - 1]
}

/// The effect of a line on text: a shape that begins behind it, or a row of text.
fn in_text(state: State, line: &[u8]) -> Option<(State, Next)> {
    let behind = || {
        let is_beside = matches!(state.stage, Stage::Text | Stage::Body);
        let near = |(shape, _): &(&&Shape, u8)| is_beside || shape.crosses_gaps;
        SHAPES
            .iter()
            .zip(1..)
            .filter(near)
            .find_map(|(shape, number)| {
                let start = shape.behind.iter().find(|start| start.0.fits(line, 0))?;
                let detail = shape.detail.map_or(0, |detail| detail(line));
                let state = State {
                    shape: number,
                    detail,
                    ..state
                };
                Some((state, start.1))
            })
    };
    let found = if is_blank(line) { None } else { behind() };
    found.or_else(|| row(TEXT, state, line).map(|next| (state, next)))
}

fn row(rows: &[Row], state: State, line: &[u8]) -> Option<Next> {
    let mut rows = rows.iter().filter(|row| row.0.contains(&state.stage));
    rows.find(|row| row.1.fits(line, state.detail))
        .map(|row| row.2)
}
