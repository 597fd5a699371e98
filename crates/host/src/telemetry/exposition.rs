//! The Prometheus text format 0.0.4.

use std::fmt::{Display, Write};

use logpond_record::cast;

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

    /// One sample of the family just started.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"");
            self.escaped(text);
            self.0.push('"');
        }
        self.0.push_str(if labels.is_empty() { " " } else { "} " });
        let _ = writeln!(self.0, "{value}");
    }

    fn escaped(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '\n' => self.0.push_str("\\n"),
                '\\' | '"' => self.0.extend(['\\', character]),
                plain => self.0.push(plain),
            }
        }
    }

    /// The samples of one histogram of the family just started: bounds with how many were no larger,
    /// the sum, and how many there were.
    pub fn buckets(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        cumulative: impl IntoIterator<Item = (f64, u64)>,
        (sum, count): (f64, u64),
    ) {
        let bucket = format!("{name}_bucket");
        let mut seen = 0;
        for (bound, below) in cumulative {
            seen = below;
            let bound = bound.to_string();
            self.sample(&bucket, &[labels, &[("le", &*bound)]].concat(), below);
        }
        // What is read last is never less than what was read before it.
        let count = count.max(seen);
        self.sample(&bucket, &[labels, &[("le", "+Inf")]].concat(), count);
        self.sample(&format!("{name}_sum"), labels, sum);
        self.sample(&format!("{name}_count"), labels, count);
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
        let cumulative = histogram.cumulative();
        let cumulative = cumulative.map(|(bound, below)| (cast::float(bound) * unit, below));
        let cumulative: Vec<(f64, u64)> = cumulative.collect();
        // Read after the buckets, so that the last bucket is never below one before it.
        let whole = (cast::float(histogram.sum()) * unit, histogram.count());
        self.buckets(name, &[], cumulative, whole);
    }

    /// The text.
    pub fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_quoted() {
        let mut out = Exposition::default();
        out.sample("up", &[("upstream", "unix:/a\"b\\c\nd"), ("x", "1")], 1);
        let expected = "up{upstream=\"unix:/a\\\"b\\\\c\\nd\",x=\"1\"} 1\n";
        assert_eq!(out.finish(), expected);
    }
}
