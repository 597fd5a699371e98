//! The Prometheus text format 0.0.4.

use std::fmt::{Display, Write};

use super::instrument::Histogram;

/// A family with one sample: its name, what it says, and the value.
type Row<V> = (&'static str, &'static str, V);

/// A text that grows by families of samples.
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Starts a family: `kind` is `counter`, `gauge` or `histogram`.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// One sample of the family just started. Label values are the program's own words.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"{text}\"");
        }
        self.0.push_str(if labels.is_empty() { " " } else { "} " });
        let _ = writeln!(self.0, "{value}");
    }

    /// Whole families of one counter each: name, help and value.
    pub fn counters<V: Display>(&mut self, table: impl IntoIterator<Item = Row<V>>) {
        self.families("counter", table);
    }

    /// Whole families of one gauge each: name, help and value.
    pub fn gauges<V: Display>(&mut self, table: impl IntoIterator<Item = Row<V>>) {
        self.families("gauge", table);
    }

    fn families<V: Display>(&mut self, kind: &str, table: impl IntoIterator<Item = Row<V>>) {
        for (name, help, value) in table {
            self.family(name, kind, help);
            self.sample(name, &[], value);
        }
    }

    /// A whole family of one histogram; `unit` is what one counted unit is in the exposed unit.
    pub fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram, unit: f64) {
        self.family(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        let mut seen = 0;
        for (bound, below) in histogram.cumulative() {
            seen = below;
            let bound = (bound as f64 * unit).to_string();
            self.sample(&bucket, &[("le", &bound)], below);
        }
        // Read after the buckets, so that the last bucket is never below one before it.
        let count = histogram.count().max(seen);
        self.sample(&bucket, &[("le", "+Inf")], count);
        self.sample(&format!("{name}_sum"), &[], histogram.sum() as f64 * unit);
        self.sample(&format!("{name}_count"), &[], count);
    }

    /// The text.
    pub fn finish(self) -> String {
        self.0
    }
}
