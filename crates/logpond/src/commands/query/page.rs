//! `-o html`: what the page says beside its rows.

use jiff::tz::TimeZone;
use logpond_client::{Parameters, Trailer};
use logpond_render::html::{Bucket, Facts, range_text, zoned};
use logpond_search::query::Filter;

use super::{Origin, Question};
use crate::cli::Query;
use crate::commands::listing::{count, rows, text};
use crate::commands::selection::now;
use crate::commands::{Failure, client};

/// Refuses what a page cannot be.
pub(super) fn refuse_other_flags(args: &Query) -> Result<(), Failure> {
    let others = [
        (args.follow, "--follow"),
        (args.count, "--count"),
        (args.quiet, "--quiet"),
    ];
    match others.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, flag)) => {
            Err(format!("-o html writes a page of rows, so {flag} means nothing").into())
        }
        None => Ok(()),
    }
}

/// The server or the files that are asked, and whether it is a server.
pub(super) fn source(args: &Query, origin: &Origin) -> (String, bool) {
    match origin {
        Origin::Server => (args.server.addr.clone(), true),
        Origin::Files(files) => {
            let names: Vec<_> = files
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            (names.join(", "), false)
        }
    }
}

/// The facts of an answer. Parts that its histogram lacks are missing in the answer, too.
pub(super) fn facts(
    args: &Query,
    question: &Question,
    (source, is_server): (String, bool),
    trailer: &mut Trailer,
) -> Result<Facts, Failure> {
    let zone = if args.utc {
        TimeZone::UTC
    } else {
        question.meaning.zone.clone()
    };
    let buckets = if is_server {
        buckets(args, question, &zone, trailer)?
    } else {
        Vec::new()
    };
    let meaning = &question.meaning;
    let missing = trailer.missing.iter().map(|part| match part.as_str() {
        Some(text) => text.to_owned(),
        None => part.to_string(),
    });
    let mut missing: Vec<String> = missing.collect();
    if missing.is_empty() && !trailer.complete {
        missing.push("a part of the source could not be read".to_owned());
    }
    let given = |time: Option<logpond_record::Timestamp>| time.map(|time| time.to_string());
    let from = given(meaning.since).or_else(|| trailer.from.clone());
    let to = given(meaning.until).or_else(|| trailer.to.clone());
    let matches = (!buckets.is_empty()).then(|| buckets.iter().map(|bucket| bucket.count).sum());
    Ok(Facts {
        query: match &meaning.filter {
            Filter::All => "all records".to_owned(),
            filter => filter.to_string(),
        },
        range: range_text(from, to),
        source,
        made: zoned(&now().to_string(), &zone),
        missing,
        lost: trailer.lost.clone(),
        matches,
        has_more: trailer.more,
        buckets,
    })
}

/// The histogram over the range that was searched.
fn buckets(
    args: &Query,
    question: &Question,
    zone: &TimeZone,
    trailer: &mut Trailer,
) -> Result<Vec<Bucket>, Failure> {
    let mut parameters: Parameters = question.meaning.parameters();
    parameters.retain(|(name, _)| !matches!(*name, "from" | "to"));
    let bounds = [("from", &trailer.from), ("to", &trailer.to)];
    let bounds = bounds
        .into_iter()
        .filter_map(|(name, time)| Some((name, time.clone()?)));
    parameters.extend(bounds);
    parameters.push(("by", "level".to_owned()));
    let answer = client(&args.server)?.get("/api/v1/histogram", &parameters)?;
    let (rows, counted) = rows(answer)?;
    trailer.lack_too(counted);
    let buckets = rows.iter().map(|row| Bucket {
        from: zoned(&text(row, "from"), zone),
        count: count(row, "count"),
        levels: levels(row),
    });
    Ok(buckets.collect())
}

fn levels(row: &serde_json::Value) -> Vec<(String, u64)> {
    let by = row["by"].as_object().into_iter().flatten();
    by.map(|(level, count)| (level.clone(), count.as_u64().unwrap_or(0)))
        .collect()
}
