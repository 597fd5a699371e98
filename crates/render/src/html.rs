//! `-o html`: one page that needs nothing else, for the file of an incident.
//!
//! ```text
//! head: the query, its range, its completeness ─ histogram (SVG) ─ table of rows ─ what was left out
//! ```
//!
//! Invariants: the page has no script, no address of anything and no style but one
//! `<style amp-custom>`, as AMP demands; every text of a record passes [`write_text`], so no record
//! can add an element, an attribute or a style; the page is bounded by [`ROWS_MAX`] and
//! [`PAGE_BYTES_MAX`], and says what these left out.

use std::borrow::Cow;

use jiff::tz::TimeZone;
use logpond_record::{Severity, cast};
use logpond_search::label;

use super::line::HEAD;
use super::pretty::local;
use super::{Render, Row, quantity};
use logpond_host::terminal::text::{write_name, write_safe};

/// Rows of a page unless another number is asked for: as many as people look through.
pub const ROWS_DEFAULT: u64 = 1000;

/// The time of a bucket and of the page.
const TIME: &str = "%Y-%m-%d %H:%M:%S %:z";

/// Most rows of a page: a browser lays out a table of so many in about a second.
pub const ROWS_MAX: usize = 10_000;

/// Most bytes of all rows of a page; it is sent by mail and opened on phones.
const PAGE_BYTES_MAX: usize = 16 << 20;

/// Most bytes of a text that a cell shows.
const CELL_BYTES_MAX: usize = 8 << 10;

/// Most fields that a row shows.
const FIELDS_MAX: usize = 64;

/// Most bars of the histogram: each is then a pixel or two wide.
const BARS_MAX: usize = 480;

/// Width and height of the histogram, in units of the drawing.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 140.0;

/// Fields that senders use for the machine and for the program, in the order of preference: those of the page's list.
const COLUMNS: [&[&str]; 2] = [
    &[
        "hostname",
        "host",
        "_HOSTNAME",
        "host.name",
        "k8s.node.name",
        "node",
        "instance",
    ],
    &[
        "app",
        "service_name",
        "service",
        "service.name",
        "app_name",
        "appname",
        "application",
        "SYSLOG_IDENTIFIER",
        "program",
        "_COMM",
        "container_name",
        "container",
        "k8s.container.name",
        "job",
        "tag",
        "logger",
    ],
];

/// A span of the histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bucket {
    /// Its begin, as it is shown.
    pub from: String,
    /// Records in it.
    pub count: u64,
    /// How many of them have each level, by its name.
    pub levels: Vec<(String, u64)>,
}

/// Texts about an answer that are no rows of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The query.
    pub query: String,
    /// The range of event times.
    pub range: String,
    /// The server or the files that were asked.
    pub source: String,
    /// The time of the answer.
    pub made: String,
    /// Parts that the answer lacks, in words; none if it is complete.
    pub missing: Vec<String>,
    /// Records that no answer will ever have, in words.
    pub lost: Vec<String>,
    /// Matches in all, if they were counted.
    pub matches: Option<u64>,
    /// True if there are more matches than were asked for.
    pub has_more: bool,
    /// The histogram over the range; empty for none.
    pub buckets: Vec<Bucket>,
}

/// See the module.
pub struct Html {
    zone: TimeZone,
    facts: Facts,
    rows: Vec<u8>,
    shown: usize,
    left_out: usize,
}

impl Html {
    /// A page whose times are in this zone.
    pub fn new(zone: TimeZone) -> Html {
        Html {
            zone,
            facts: Facts::default(),
            rows: Vec::new(),
            shown: 0,
            left_out: 0,
        }
    }
}

impl Render for Html {
    fn row(&mut self, row: &Row<'_>, _: &mut Vec<u8>) {
        if self.shown >= ROWS_MAX || self.rows.len() >= PAGE_BYTES_MAX {
            self.left_out += 1;
            return;
        }
        self.shown += 1;
        write_row(row, &self.zone, &mut self.rows);
    }

    fn gap(&mut self, _: &mut Vec<u8>) {
        if self.left_out == 0 {
            self.rows
                .extend_from_slice(b"<tr class=gap><td colspan=5>&hellip;</td></tr>\n");
        }
    }

    fn conclude(&mut self, facts: Facts) {
        self.facts = facts;
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        write_head(&self.facts.query, out);
        self.write_facts(out);
        write_histogram(&self.facts.buckets, out);
        let columns = "<tr><th>Time<th>Level<th>Host<th>App<th>Message and fields</tr>";
        put(
            &format!("<table>\n<thead>{columns}</thead>\n<tbody>\n"),
            out,
        );
        out.extend_from_slice(&std::mem::take(&mut self.rows));
        put("</tbody>\n</table>\n", out);
        if self.left_out > 0 {
            let left_out = quantity::count(self.left_out as u64);
            let shown = quantity::count(self.shown as u64);
            let text = format!(
                "<p class=warn>{left_out} rows more are left out: a page has at most {} rows and {}, \
                 and this one shows the first {shown}.</p>\n",
                quantity::count(ROWS_MAX as u64),
                quantity::bytes(PAGE_BYTES_MAX as u64),
            );
            put(&text, out);
        }
        put("</main>\n</body>\n</html>\n", out);
    }
}

impl Html {
    fn write_facts(&self, out: &mut Vec<u8>) {
        let facts = &self.facts;
        put("<h1>Logpond report</h1>\n<dl>\n", out);
        let shown = quantity::counted(self.shown as u64, "row");
        let rows = match (facts.matches, facts.has_more) {
            (Some(all), _) => format!("{shown} of {} that match", quantity::count(all)),
            (None, true) => format!("{shown}; more match, and a larger -n shows them"),
            (None, false) => shown,
        };
        let all = [
            ("Query", &facts.query),
            ("Range", &facts.range),
            ("Source", &facts.source),
            ("Made", &facts.made),
            ("Rows", &rows),
        ];
        for (name, value) in all.into_iter().filter(|(_, value)| !value.is_empty()) {
            put(&format!("<dt>{name}</dt><dd>"), out);
            write_text(value.as_bytes(), out);
            put("</dd>\n", out);
        }
        put("<dt>Complete</dt>", out);
        if facts.missing.is_empty() && facts.lost.is_empty() {
            put("<dd>yes: no part of the range is missing</dd>\n", out);
        }
        let missing = facts.missing.iter().map(|text| ("no, missing: ", text));
        let lost = facts.lost.iter().map(|text| ("no, lost for good: ", text));
        for (lead, text) in missing.chain(lost) {
            put(&format!("<dd class=warn>{lead}"), out);
            write_text(text.as_bytes(), out);
            put("</dd>\n", out);
        }
        put("</dl>\n", out);
    }
}

/// A time in this zone; another text as it is.
pub fn zoned(time: &str, zone: &TimeZone) -> String {
    match time.parse::<jiff::Timestamp>() {
        Ok(time) => time.to_zoned(zone.clone()).strftime(TIME).to_string(),
        Err(_) => time.to_owned(),
    }
}

/// A range in words.
pub fn range_text(from: Option<String>, to: Option<String>) -> String {
    match (from, to) {
        (None, None) => "all times".to_owned(),
        (Some(from), None) => format!("from {from}"),
        (None, Some(to)) => format!("until {to}, excluded"),
        (Some(from), Some(to)) => format!("from {from} until {to}, excluded"),
    }
}

fn put(markup: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(markup.as_bytes());
}

/// Appends a text as text: no control character, no character of markup.
fn write_text(text: &[u8], out: &mut Vec<u8>) {
    let mut safe = Vec::with_capacity(text.len());
    write_safe(text, true, &mut safe);
    for byte in safe {
        match byte {
            b'<' => put("&lt;", out),
            b'>' => put("&gt;", out),
            b'&' => put("&amp;", out),
            b'"' => put("&quot;", out),
            b'\'' => put("&#39;", out),
            byte => out.push(byte),
        }
    }
}

/// Appends as much of a text as a cell shows, and how much more there is.
fn write_cell(text: &[u8], out: &mut Vec<u8>) {
    let shown = match std::str::from_utf8(text) {
        Ok(text) => &text.as_bytes()[..text.floor_char_boundary(CELL_BYTES_MAX)],
        Err(_) => &text[..text.len().min(CELL_BYTES_MAX)],
    };
    write_text(shown, out);
    let more = text.len() - shown.len();
    if more > 0 {
        let more = quantity::bytes(more as u64);
        put(&format!(" <i>&hellip; {more} more</i>"), out);
    }
}

fn write_row(row: &Row<'_>, zone: &TimeZone, out: &mut Vec<u8>) {
    let time = row.time.map(|time| local(time, zone));
    let fields = row.fields.iter().map(|(name, value)| (&**name, value));
    let level = label::severity_of(fields);
    let class = level.map_or("", |(_, severity)| class_of(severity));
    put(
        &format!(
            "<tr><td class=t>{}<td class={class:?}>",
            time.unwrap_or_default()
        ),
        out,
    );
    if let Some((_, severity)) = level {
        put(severity.name(), out);
    }
    let shown = COLUMNS.map(|names| {
        let mut found = names.iter().filter(|name| row.field(name).is_some());
        found.next().copied().unwrap_or_default()
    });
    for name in shown {
        put("<td class=h>", out);
        let value = row.field(name).map(|value| value.to_text());
        write_cell(&value.unwrap_or(Cow::Borrowed(b"")), out);
    }
    put("<td class=m>", out);
    let message = row.message_behind(&HEAD);
    write_cell(message, out);
    let skipped = [shown[0], shown[1], level.map_or("", |(name, _)| name)];
    let behind = row.fields_behind(message, &skipped);
    for (name, value) in behind.iter().take(FIELDS_MAX) {
        let mut safe = Vec::new();
        write_name(name, &mut safe);
        put(" <span><b>", out);
        write_cell(&safe, out);
        put("</b>=", out);
        write_cell(&value.to_text(), out);
        put("</span>", out);
    }
    if behind.len() > FIELDS_MAX {
        let more = behind.len() - FIELDS_MAX;
        put(&format!(" <i>&hellip; {more} fields more</i>"), out);
    }
    put("</tr>\n", out);
}

/// The class of a level's colour.
fn class_of(severity: Severity) -> &'static str {
    match severity {
        Severity::Trace | Severity::Debug => "debug",
        Severity::Info | Severity::Notice => "info",
        Severity::Warn => "warn",
        Severity::Error => "error",
        Severity::Critical | Severity::Alert | Severity::Fatal => "fatal",
    }
}

/// The classes of bars, from the bottom up; the first is for records without a level.
const STACK: [&str; 6] = ["other", "debug", "info", "warn", "error", "fatal"];

/// Counts of a bar, by [`STACK`].
fn stacked(bucket: &Bucket) -> [u64; STACK.len()] {
    let mut counts = [0; STACK.len()];
    for (name, count) in &bucket.levels {
        let class = Severity::of_word(name.as_bytes()).map_or(STACK[0], class_of);
        let at = STACK.iter().position(|known| *known == class).unwrap_or(0);
        counts[at] += count;
    }
    let levelled: u64 = counts[1..].iter().sum();
    counts[0] = bucket.count.saturating_sub(levelled);
    counts
}

/// Joins neighbours until there are few enough.
fn joined(buckets: &[Bucket]) -> Vec<Bucket> {
    let width = buckets.len().div_ceil(BARS_MAX).max(1);
    let each = buckets.chunks(width).map(|group| Bucket {
        from: group[0].from.clone(),
        count: group.iter().map(|bucket| bucket.count).sum(),
        levels: group
            .iter()
            .flat_map(|bucket| bucket.levels.clone())
            .collect(),
    });
    each.collect()
}

fn write_histogram(buckets: &[Bucket], out: &mut Vec<u8>) {
    let bars = joined(buckets);
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0);
    let (Some(first), Some(last), true) = (bars.first(), bars.last(), most > 0) else {
        return;
    };
    let view = format!("0 0 {WIDTH} {}", HEIGHT + 20.0);
    put(
        &format!("<svg viewBox=\"{view}\" role=img aria-label=\"Records over time\">\n"),
        out,
    );
    let width = WIDTH / cast::float(bars.len());
    for (number, bar) in bars.iter().enumerate() {
        let left = cast::float(number) * width;
        put("<g><title>", out);
        write_text(bar.from.as_bytes(), out);
        put(&format!(": {}</title>", quantity::count(bar.count)), out);
        let mut top = HEIGHT;
        for (class, count) in STACK
            .iter()
            .zip(stacked(bar))
            .filter(|(_, count)| *count > 0)
        {
            let height = cast::float(count) / cast::float(most) * HEIGHT;
            top -= height;
            let inner = (width * 0.9).max(0.5);
            let rect = format!(
                "<rect class={class} x=\"{left:.2}\" y=\"{top:.2}\" width=\"{inner:.2}\" \
                 height=\"{height:.2}\"/>"
            );
            put(&rect, out);
        }
        put("</g>\n", out);
    }
    let base = HEIGHT + 15.0;
    put(&format!("<text x=\"0\" y=\"{base}\">"), out);
    write_text(first.from.as_bytes(), out);
    put(
        &format!("</text>\n<text x=\"{WIDTH}\" y=\"{base}\" text-anchor=\"end\">"),
        out,
    );
    write_text(last.from.as_bytes(), out);
    let most = quantity::count(most);
    put(
        &format!("</text>\n<text x=\"0\" y=\"12\">{most}</text>\n</svg>\n"),
        out,
    );
}

/// The only style of the page. It names no font, image or other file.
const STYLE: &str = "\
body{font:14px/1.45 system-ui,sans-serif;margin:1.5em;color:#1c2733;background:#fff}\
h1{font-size:1.3em}dl{display:grid;grid-template-columns:max-content 1fr;gap:.2em 1em}\
dt{color:#5a6875;grid-column:1}dd{margin:0;grid-column:2;overflow-wrap:anywhere}\
svg{display:block;width:100%;max-height:220px;margin:1em 0}svg text{font-size:12px;fill:#5a6875}\
table{border-collapse:collapse;width:100%}\
th{text-align:left;color:#5a6875;position:sticky;top:0;background:#fff}\
td,th{padding:.15em .6em .15em 0;vertical-align:top;border-bottom:1px solid #e3e8ed}\
td.t{white-space:nowrap}td.h{min-width:6em;overflow-wrap:anywhere}td.m{white-space:pre-wrap;overflow-wrap:anywhere}\
td,dd{font-family:ui-monospace,monospace;font-size:13px}td span{color:#5a6875}i{color:#5a6875}\
td.debug{color:#3b5b9d}td.info{color:#23703a}td.warn,dd.warn,p.warn{color:#8a5a00}\
td.error{color:#b3261e}td.fatal{color:#7a1fa2}.gap{text-align:center}\
rect.other{fill:#9aa7b3}rect.debug{fill:#7d9be0}rect.info{fill:#58a870}rect.warn{fill:#d79a2b}\
rect.error{fill:#d8453c}rect.fatal{fill:#9c3fc4}\
@media (prefers-color-scheme:dark){body,th{color:#dde4ea;background:#12181f}\
td,th{border-color:#2a333d}dt,td span,i,th{color:#9aa7b3}svg text{fill:#9aa7b3}\
td.debug{color:#8fb0ff}td.info{color:#7fd199}td.warn,dd.warn,p.warn{color:#e8b45a}\
td.error{color:#ff8a80}td.fatal{color:#d9a0f0}}\
@media (max-width:640px){body{margin:.8em}svg text{font-size:26px}thead{display:none}\
table,tbody,tr{display:block}tr{padding:.3em 0;border-bottom:1px solid #8a96a2}\
td{display:inline;border:0;padding:0 .5em 0 0}td.m{display:block;padding:0}}";

fn write_head(query: &str, out: &mut Vec<u8>) {
    put(
        "<!doctype html>\n<html amp lang=en>\n<head>\n<meta charset=utf-8>\n<title>",
        out,
    );
    write_cell(query.as_bytes(), out);
    put(" · Logpond</title>\n<link rel=canonical href=\".\">\n", out);
    put("<meta name=viewport content=\"width=device-width\">\n", out);
    put(
        &format!("<style amp-custom>{STYLE}</style>\n</head>\n<body>\n<main>\n"),
        out,
    );
}

#[cfg(test)]
mod tests;
