//! Records of what quotas did not let in.

use logpond_record::{Batch, EntryKind, Timestamp, Value};

use super::quota::Usage;
use logpond_host::hostname;

/// Losses that wait to be told while the journal takes nothing; further ones are put together.
const LOSSES_MAX: usize = 20_000;

/// A field by which sources are told apart, and its value if they have it.
pub(super) type SourceField = (Box<str>, Option<Box<str>>);

/// What a source lost within a window, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::ingest) struct Loss {
    pub(super) quota: Box<str>,
    /// Names and values; `None` are all for whom there was no room.
    pub(super) source: Option<Vec<SourceField>>,
    pub(super) usage: Usage,
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
}

/// Adds a loss to others.
pub(super) fn add(losses: &mut Vec<Loss>, loss: Loss) {
    let is_full = losses.len() >= LOSSES_MAX;
    match losses.last_mut().filter(|_| is_full) {
        Some(last) => {
            last.source = None;
            last.usage.add(loss.usage);
            last.from = last.from.min(loss.from);
            last.until = last.until.max(loss.until);
        }
        None => losses.push(loss),
    }
}

impl Loss {
    pub(in crate::ingest) fn text(&self) -> String {
        let Loss {
            quota,
            source,
            usage,
            from,
            until,
        } = self;
        let of = match source.as_deref() {
            None => " of other sources".to_owned(),
            Some([]) => String::new(),
            Some(fields) => {
                let fields = fields.iter().map(|(name, value)| match value {
                    Some(value) => format!("{name}={value}"),
                    None => format!("no {name}"),
                });
                format!(" of {}", fields.collect::<Vec<_>>().join(" "))
            }
        };
        format!(
            "logpond: quota \"{quota}\": {} records ({} bytes){of} were not kept from {} to {}",
            thousands(usage.records),
            thousands(usage.bytes),
            seconds(*from),
            seconds(*until),
        )
    }

    fn push_to(&self, batch: &mut Batch, now: Timestamp) {
        let text = |text: &str| Value::Str(text.to_owned().into());
        let count = |count: u64| Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
        let mut fields = vec![
            ("level", text("warning")),
            ("_quota", text(&self.quota)),
            ("_lost_records", count(self.usage.records)),
            ("_lost_bytes", count(self.usage.bytes)),
        ];
        for (name, value) in self.source.iter().flatten() {
            if let Some(value) = value {
                fields.push((name, text(value)));
            }
        }
        let fields = fields.iter().map(|(name, value)| (*name, value));
        batch.push_enveloped(EntryKind::Text, Some(now), fields, self.text().as_bytes());
    }
}

/// A record for each loss.
pub(in crate::ingest) fn batch(losses: &[Loss], hostname: &str, now: Timestamp) -> Batch {
    let labels = hostname::labels_of_server(hostname);
    let mut batch = Batch::new(EntryKind::Enveloped, labels);
    losses.iter().for_each(|loss| loss.push_to(&mut batch, now));
    batch
}

/// A number with commas between its thousands.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A time without fractions of a second.
fn seconds(time: Timestamp) -> String {
    let text = time.to_string();
    match text.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_told_in_words() {
        let loss = Loss {
            quota: "per app".into(),
            source: Some(vec![
                ("app".into(), Some("chatty".into())),
                ("host".into(), None),
            ]),
            usage: Usage {
                records: 1234,
                bytes: 56_789,
            },
            from: Timestamp(60_000_000_000),
            until: Timestamp(120_000_000_000),
        };
        assert_eq!(
            loss.text(),
            "logpond: quota \"per app\": 1,234 records (56,789 bytes) of app=chatty no host were not \
             kept from 1970-01-01T00:01:00Z to 1970-01-01T00:02:00Z"
        );
    }

    #[test]
    fn thousands_have_commas() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(thousands(number), text);
        }
    }
}
