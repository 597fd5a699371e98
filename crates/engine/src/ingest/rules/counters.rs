//! What is counted of rules and quotas.

use super::stage::Tally;
use logpond_host::telemetry::{Counter, Exposition};

/// What a rule did.
#[derive(Debug, Default)]
pub(super) struct RuleCounters {
    pub(super) dropped: Counter,
    pub(super) sampled: Counter,
    pub(super) changed: Counter,
}

/// What a quota did not let in.
#[derive(Debug, Default)]
pub(super) struct QuotaCounters {
    pub(super) records: Counter,
    pub(super) bytes: Counter,
}

/// All records that were accepted and are not kept, by reason, since the start of the process.
#[derive(Debug, Default)]
pub(super) struct Totals {
    dropped: QuotaCounters,
    sampled: QuotaCounters,
    quota: QuotaCounters,
    fields_left_out: Counter,
}

impl Totals {
    pub(super) fn add(&self, tally: &Tally) {
        let reasons = [
            (&self.dropped, tally.dropped),
            (&self.sampled, tally.sampled),
            (&self.quota, tally.over_quota()),
        ];
        for (counters, usage) in reasons {
            counters.records.add(usage.records);
            counters.bytes.add(usage.bytes);
        }
        self.fields_left_out.add(tally.fields_left_out);
    }

    pub(super) fn expose(&self, out: &mut Exposition) {
        let reasons = [
            ("dropped", &self.dropped),
            ("sampled", &self.sampled),
            ("quota", &self.quota),
        ];
        type Read = fn(&QuotaCounters) -> i64;
        let families: [(&str, &str, Read); 2] = [
            (
                "logpond_ingest_left_out_records_total",
                "Records accepted and not kept, as rules and quotas say.",
                |counters| counters.records.get(),
            ),
            (
                "logpond_ingest_left_out_bytes_total",
                "Bytes of records accepted and not kept.",
                |counters| counters.bytes.get(),
            ),
        ];
        for (name, help, read) in families {
            out.family(name, "counter", help);
            for (reason, counters) in reasons {
                out.sample(name, &[("reason", reason)], read(counters));
            }
        }
        out.counters([(
            "logpond_rule_left_out_fields_total",
            "Fields of changed records beyond the most that a record has.",
            self.fields_left_out.get(),
        )]);
    }
}
