//! Which stages of a range aggregation do something.

use crate::label::ComputedLabel;
use crate::logql::{LabelChoice, LabelSource, RangeAggregation, RangeFunction, Stage, StageKind};
use crate::pipeline::{ERROR, ERROR_DETAILS};

/// The stages that do something. Dropping errors where there can be none, as Grafana's volumes do it,
/// does nothing; and nor does another line that nobody reads, whose template cannot fail then, as in
/// Loki. `looked_at` are the labels that matter, if that is known.
pub(super) fn effective(
    aggregation: &RangeAggregation,
    stages: &[Stage],
    looked_at: Option<&[Box<str>]>,
) -> Vec<Stage> {
    let stages = without_idle_parsers(stages, looked_at);
    let mut may_fail = false;
    let is_wanted = |stage: &&Stage| {
        let drops_errors = drops(&stage.kind, &[ERROR, ERROR_DETAILS]);
        may_fail |= !drops_errors && !matches!(stage.kind, StageKind::LineFilter(_));
        may_fail || !drops_errors
    };
    let of_bytes = [RangeFunction::BytesOverTime, RangeFunction::BytesRate];
    let mut is_read = of_bytes.contains(&aggregation.function);
    let mut read: Vec<Stage> = Vec::new();
    for stage in stages.iter().rev() {
        let is_line = matches!(stage.kind, StageKind::LineFormat(_));
        if is_read || !is_line {
            is_read |= reads_line(&stage.kind);
            read.push(stage.clone());
        }
    }
    read.reverse();
    read.iter().filter(is_wanted).cloned().collect()
}

/// Without parsers that find nothing which matters, and whose errors are dropped right behind them. Each line
/// has the labels that are computed of it, so that what a parser finds has another name. Grafana's app for
/// logs reads each line as JSON and as logfmt, whatever it asks for.
fn without_idle_parsers(stages: &[Stage], looked_at: Option<&[Box<str>]>) -> Vec<Stage> {
    let are_all_computed = looked_at.is_some_and(|names| {
        let mut names = names.iter();
        names.all(|name| ComputedLabel::named(name).is_some())
    });
    let ends = |stage: &Stage| drops(&stage.kind, &[ERROR, ERROR_DETAILS]);
    let end = stages.iter().position(ends);
    let (before, behind) = stages.split_at(end.unwrap_or(0));
    let forgives = |stage: &Stage| !drops(&stage.kind, &[ERROR_DETAILS]);
    let is_simple =
        |stage: &Stage| only_finds(&stage.kind) || matches!(stage.kind, StageKind::LineFilter(_));
    if !are_all_computed || !behind.first().is_some_and(forgives) || !before.iter().all(is_simple) {
        return stages.to_vec();
    }
    let kept = before.iter().filter(|stage| !only_finds(&stage.kind));
    kept.chain(behind).cloned().collect()
}

/// Whether a stage does nothing but find labels in the line.
fn only_finds(stage: &StageKind) -> bool {
    matches!(
        stage,
        StageKind::Json(_) | StageKind::Logfmt(_) | StageKind::Regexp(_) | StageKind::Pattern(_)
    )
}

/// Whether a stage drops some of these labels, and no others.
fn drops(stage: &StageKind, labels: &[&str]) -> bool {
    let StageKind::Drop(choices) = stage else {
        return false;
    };
    choices.iter().all(|choice| match choice {
        LabelChoice::Name(name) => labels.contains(&&**name),
        LabelChoice::Matcher(_) => false,
    })
}

/// Whether what a stage does depends on the line.
fn reads_line(stage: &StageKind) -> bool {
    /// What templates call the line.
    const LINE: &str = "__line__";
    match stage {
        StageKind::LineFilter(_)
        | StageKind::Json(_)
        | StageKind::Logfmt(_)
        | StageKind::Regexp(_)
        | StageKind::Pattern(_)
        | StageKind::Unpack => true,
        StageKind::LineFormat(template) => template.contains(LINE),
        StageKind::LabelFormat(formats) => formats.iter().any(|format| match &format.from {
            LabelSource::Template(template) => template.contains(LINE),
            LabelSource::Label(_) => false,
        }),
        StageKind::LabelFilter(_)
        | StageKind::Decolorize
        | StageKind::Drop(_)
        | StageKind::Keep(_) => false,
    }
}
