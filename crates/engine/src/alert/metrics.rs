//! What alerts say about themselves.

use std::sync::Arc;

use logpond_search::alert::Stage;

use super::Alerts;
use logpond_host::telemetry::{Counter, Exposition, Histogram, Metrics};

/// From microseconds to a minute, in nanoseconds.
const POWERS: (u32, u32) = (14, 36);

/// Counters of evaluations.
pub(super) struct Counters {
    pub(super) evaluations: Counter,
    pub(super) failures: Counter,
    pub(super) missed: Counter,
    pub(super) recorded: Counter,
    pub(super) unrecorded: Counter,
    pub(super) unwritten: Counter,
    pub(super) seconds: Histogram,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            evaluations: Counter::default(),
            failures: Counter::default(),
            missed: Counter::default(),
            recorded: Counter::default(),
            unrecorded: Counter::default(),
            unwritten: Counter::default(),
            seconds: Histogram::new(POWERS),
        }
    }
}

impl Alerts {
    /// Adds their counters to the exposition.
    pub fn expose_in(self: &Arc<Alerts>, metrics: &Metrics) {
        let alerts = Arc::downgrade(self);
        metrics.register(Box::new(move |out| {
            if let Some(alerts) = alerts.upgrade() {
                alerts.expose(out);
            }
        }));
    }

    fn expose(&self, out: &mut Exposition) {
        let counters = &self.counters;
        out.counters([
            (
                "logpond_alert_evaluations_total",
                "Evaluations of alert and recording rules.",
                counters.evaluations.get(),
            ),
            (
                "logpond_alert_evaluation_failures_total",
                "Evaluations that failed, or had no complete answer.",
                counters.failures.get(),
            ),
            (
                "logpond_alert_evaluations_missed_total",
                "Evaluations of groups that were left out because earlier ones took too long.",
                counters.missed.get(),
            ),
            (
                "logpond_alert_recorded_total",
                "Numbers of recording rules that were written down.",
                counters.recorded.get(),
            ),
            (
                "logpond_alert_unrecorded_total",
                "Numbers of recording rules that could not be written down, and are lost.",
                counters.unrecorded.get(),
            ),
            (
                "logpond_alert_state_failures_total",
                "Times that the state of alerts could not be written to the disk.",
                counters.unwritten.get(),
            ),
        ]);
        out.histogram(
            "logpond_alert_evaluation_seconds",
            "Time for the evaluation of one group of rules.",
            &counters.seconds,
            1e-9,
        );
        self.expose_alerts(out);
        self.expose_notices(out);
    }

    fn expose_alerts(&self, out: &mut Exposition) {
        let loaded = self.loaded();
        let mut counts = [("pending", 0u64), ("firing", 0)];
        for group in &loaded.groups {
            let known = self.known(&group.key);
            let rules = known.state.rules.iter();
            for alert in rules.flat_map(|(_, rule)| rule.alerts.values()) {
                match alert.stage {
                    Stage::Pending => counts[0].1 += 1,
                    Stage::Firing => counts[1].1 += 1,
                    Stage::Resolved => {}
                }
            }
        }
        let rules = loaded.groups.iter().map(|group| group.group.rules.len());
        out.gauges([(
            "logpond_alert_rules",
            "Alert and recording rules that apply.",
            rules.sum::<usize>(),
        )]);
        out.family("logpond_alerts", "gauge", "Alerts that are there.");
        for (state, count) in counts {
            out.sample("logpond_alerts", &[("state", state)], count);
        }
    }

    fn expose_notices(&self, out: &mut Exposition) {
        let table = [
            (
                "logpond_alert_notices_total",
                "Notices of alerts that receivers took.",
            ),
            (
                "logpond_alert_notice_failures_total",
                "Attempts to tell receivers of alerts that failed.",
            ),
            (
                "logpond_alert_notices_dropped_total",
                "Notices of alerts that receivers refused for good, or that found no room.",
            ),
        ];
        for (at, (name, help)) in table.into_iter().enumerate() {
            if self.targets.is_empty() {
                return;
            }
            out.family(name, "counter", help);
            for (number, target) in self.targets.iter().enumerate() {
                let number = number.to_string();
                let labels = [("receiver", target.form()), ("number", &number)];
                out.sample(name, &labels, target.counts()[at]);
            }
        }
    }
}
