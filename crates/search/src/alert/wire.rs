//! The state of rules as bytes: on disk, and between nodes. `docs/format/alerts.md` is normative.

use std::sync::Arc;

use logpond_record::{Timestamp, cast};
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::state::{Alert, Health, RuleState, Stage};
use crate::metric::SeriesLabels;

/// Version of the encoding.
const VERSION: u64 = 1;

/// The longest message: a hundred thousand alerts of some 600 bytes.
pub const STATE_BYTES_MAX: u64 = 64 << 20;

/// The longest text: a label may be a whole line.
const TEXT_BYTES_MAX: usize = cast::to_usize(STATE_BYTES_MAX);

/// What is known of a group between its evaluations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupState {
    /// Which group.
    pub key: String,
    /// The last instant that was evaluated.
    pub evaluated_at: Option<Timestamp>,
    /// How long that took, in nanoseconds.
    pub took_ns: i64,
    /// Its rules by their keys; of several that are the same the first comes first.
    pub rules: Vec<(String, RuleState)>,
}

/// The bytes of some groups.
pub fn encode(groups: &[GroupState]) -> Vec<u8> {
    let mut out = Encoder::new(VERSION);
    out.count(groups.len());
    for group in groups {
        out.bytes(group.key.as_bytes());
        write_time(group.evaluated_at, &mut out);
        out.number(group.took_ns.max(0).unsigned_abs());
        out.count(group.rules.len());
        for (key, rule) in &group.rules {
            out.bytes(key.as_bytes());
            write_rule(rule, &mut out);
        }
    }
    out.finish()
}

fn write_rule(rule: &RuleState, out: &mut Encoder) {
    match &rule.health {
        Health::Unknown => out.number(0),
        Health::Good => out.number(1),
        Health::Bad(why) => {
            out.number(2);
            out.bytes(why.as_bytes());
        }
    }
    write_time(rule.evaluated_at, out);
    out.number(rule.took_ns.max(0).unsigned_abs());
    out.count(rule.alerts.len());
    for (labels, alert) in &rule.alerts {
        write_pairs(labels.iter(), out);
        let annotations = alert.annotations.iter();
        write_pairs(annotations.map(|(n, v)| (&**n, &**v)), out);
        out.wide(u128::from(alert.value.to_bits()));
        out.number(match alert.stage {
            Stage::Pending => 0,
            Stage::Firing => 1,
            Stage::Resolved => 2,
        });
        out.time(alert.active_at);
        for time in [
            alert.fired_at,
            alert.resolved_at,
            alert.kept_since,
            alert.sent_at,
            alert.told_at,
        ] {
            write_time(time, out);
        }
    }
}

fn write_pairs<'t>(pairs: impl Iterator<Item = (&'t str, &'t str)>, out: &mut Encoder) {
    let pairs: Vec<_> = pairs.collect();
    out.count(pairs.len());
    for (name, value) in pairs {
        out.bytes(name.as_bytes());
        out.bytes(value.as_bytes());
    }
}

fn write_time(time: Option<Timestamp>, out: &mut Encoder) {
    out.flag(time.is_some());
    if let Some(time) = time {
        out.time(time);
    }
}

/// Reads what [`encode`] wrote.
///
/// # Errors
/// When the bytes are something else.
pub fn decode(bytes: &[u8]) -> Result<Vec<GroupState>, DecodeError> {
    let mut from = Decoder::new(bytes, VERSION)?;
    let mut groups = Vec::new();
    for _ in 0..from.count(4, "the groups")? {
        let mut group = GroupState {
            key: from.text(TEXT_BYTES_MAX, "a group")?.to_owned(),
            evaluated_at: read_time(&mut from)?,
            took_ns: read_span(&mut from)?,
            rules: Vec::new(),
        };
        for _ in 0..from.count(5, "the rules")? {
            let key = from.text(TEXT_BYTES_MAX, "a rule")?.to_owned();
            group.rules.push((key, read_rule(&mut from)?));
        }
        groups.push(group);
    }
    from.finish()?;
    Ok(groups)
}

fn read_rule(from: &mut Decoder<'_>) -> Result<RuleState, DecodeError> {
    let mut rule = RuleState {
        health: match from.number("the health")? {
            0 => Health::Unknown,
            1 => Health::Good,
            2 => Health::Bad(from.text(TEXT_BYTES_MAX, "an error")?.into()),
            _ => return Err(DecodeError::Malformed("the health")),
        },
        evaluated_at: read_time(from)?,
        took_ns: read_span(from)?,
        ..RuleState::default()
    };
    // Two counts, a number, a stage, five times.
    for _ in 0..from.count(32, "the alerts")? {
        let labels = read_pairs(from)?;
        let labels = labels.iter().map(|(name, value)| (&**name, &**value));
        let labels = Arc::new(SeriesLabels::new(labels));
        rule.alerts.insert(labels, read_alert(from)?);
    }
    Ok(rule)
}

fn read_alert(from: &mut Decoder<'_>) -> Result<Alert, DecodeError> {
    let annotations = read_pairs(from)?;
    let bits = from.wide("a value")?;
    let bits = u64::try_from(bits).map_err(|_| DecodeError::Malformed("a value"))?;
    Ok(Alert {
        annotations,
        value: f64::from_bits(bits),
        stage: match from.number("a stage")? {
            0 => Stage::Pending,
            1 => Stage::Firing,
            2 => Stage::Resolved,
            _ => return Err(DecodeError::Malformed("a stage")),
        },
        active_at: from.time("a time")?,
        fired_at: read_time(from)?,
        resolved_at: read_time(from)?,
        kept_since: read_time(from)?,
        sent_at: read_time(from)?,
        told_at: read_time(from)?,
    })
}

type Pairs = Vec<(Box<str>, Box<str>)>;

fn read_pairs(from: &mut Decoder<'_>) -> Result<Pairs, DecodeError> {
    let mut pairs = Vec::new();
    for _ in 0..from.count(2, "the texts")? {
        let name = from.text(TEXT_BYTES_MAX, "a name")?.into();
        pairs.push((name, from.text(TEXT_BYTES_MAX, "a text")?.into()));
    }
    Ok(pairs)
}

fn read_time(from: &mut Decoder<'_>) -> Result<Option<Timestamp>, DecodeError> {
    if from.flag("whether there is a time")? {
        from.time("a time").map(Some)
    } else {
        Ok(None)
    }
}

fn read_span(from: &mut Decoder<'_>) -> Result<i64, DecodeError> {
    let span = from.number("a span")?;
    i64::try_from(span).map_err(|_| DecodeError::Malformed("a span"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden() -> Vec<GroupState> {
        let alert = Alert {
            annotations: vec![("summary".into(), "two".into())],
            value: 2.5,
            stage: Stage::Firing,
            active_at: Timestamp(1),
            fired_at: Some(Timestamp(2)),
            resolved_at: None,
            kept_since: None,
            sent_at: Some(Timestamp(3)),
            told_at: Some(Timestamp(4)),
        };
        let labels = SeriesLabels::new([("alertname", "A"), ("app", "shop")]);
        let firing = RuleState {
            alerts: [(Arc::new(labels), alert)].into(),
            health: Health::Good,
            evaluated_at: Some(Timestamp(1_700_000_000_000_000_000)),
            took_ns: 1_000_000,
        };
        let bad = RuleState {
            health: Health::Bad("why".into()),
            ..RuleState::default()
        };
        vec![GroupState {
            key: "rules.yml;shop".to_owned(),
            evaluated_at: Some(Timestamp(1_700_000_000_000_000_000)),
            took_ns: 2_000_000,
            rules: vec![("A 1".to_owned(), firing), ("b 2".to_owned(), bad)],
        }]
    }

    /// If this fails because the layout has changed, raise the version and write a new file.
    #[test]
    fn the_bytes_are_those_of_the_golden_file() {
        let bytes = include_bytes!("../../../../testdata/alerts/v1.state");
        assert_eq!(encode(&golden()), bytes);
        assert_eq!(decode(bytes), Ok(golden()));
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end]).is_err(), "cut at {end}");
        }
    }
}
