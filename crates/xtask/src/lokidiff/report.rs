//! What is said in the end: how many answers were equal, and the others by what they have in common.

use std::collections::BTreeMap;

/// Examples that are shown of each group.
const EXAMPLES_MAX: usize = 3;

/// Characters of a difference that are shown.
const CHARS_MAX: usize = 900;

/// Differences that look alike.
#[derive(Default)]
struct Group {
    count: usize,
    examples: Vec<String>,
}

/// All that was found.
#[derive(Default)]
pub(super) struct Report {
    asked: usize,
    equal: usize,
    /// Equal answers by their kind: many refusals would say little.
    kinds: BTreeMap<String, usize>,
    purposes: BTreeMap<&'static str, usize>,
    groups: BTreeMap<String, Group>,
}

/// A difference, as it is shown.
pub(super) struct ReportEntry {
    /// What it has in common with others.
    pub(super) group: String,
    /// The question, the smallest one that still differs.
    pub(super) question: String,
    pub(super) text: String,
    /// Addresses that both can be asked at.
    pub(super) urls: [String; 2],
}

impl Report {
    /// Notes that both answered the same.
    pub(super) fn equal(&mut self, kind: &str) {
        self.asked += 1;
        self.equal += 1;
        *self.kinds.entry(kind.to_owned()).or_default() += 1;
    }

    /// Notes a difference that is kept on purpose.
    pub(super) fn on_purpose(&mut self, reason: &'static str) {
        self.asked += 1;
        *self.purposes.entry(reason).or_default() += 1;
    }

    /// Notes a difference.
    pub(super) fn different(&mut self, found: ReportEntry) {
        self.asked += 1;
        let group = self.groups.entry(found.group).or_default();
        group.count += 1;
        if group.examples.len() < EXAMPLES_MAX {
            let text: String = found.text.chars().take(CHARS_MAX).collect();
            let [loki, ours] = found.urls;
            group.examples.push(format!(
                "  {}\n    {text}\n    curl -s '{loki}'\n    curl -s '{ours}'\n",
                found.question
            ));
        }
    }

    /// How many answers differ, not on purpose.
    pub(super) fn different_count(&self) -> usize {
        self.groups.values().map(|group| group.count).sum()
    }

    /// All of it, for a person; most frequent differences first.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        for (name, group) in groups {
            text.push_str(&format!("{} times: {name}\n", group.count));
            text.extend(group.examples.iter().map(String::as_str));
        }
        let kept: usize = self.purposes.values().sum();
        text.push_str(&format!(
            "{} asked, {} equal, {kept} differ on purpose, {} differ\n",
            self.asked,
            self.equal,
            self.different_count()
        ));
        for (kind, count) in &self.kinds {
            text.push_str(&format!("  equal: {count} {kind}\n"));
        }
        for (reason, count) in &self.purposes {
            text.push_str(&format!("  on purpose: {count} times: {reason}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alike_differences_are_put_together() {
        let mut report = Report::default();
        report.equal("streams");
        report.on_purpose("because");
        for number in 0..5 {
            report.different(ReportEntry {
                group: "g".into(),
                question: format!("q{number}"),
                text: "x".repeat(2 * CHARS_MAX),
                urls: ["l".into(), "o".into()],
            });
        }
        let text = report.text();
        assert!(text.contains("5 times: g\n") && text.contains("q2") && !text.contains("q3"));
        assert!(text.contains("7 asked, 1 equal, 1 differ on purpose, 5 differ\n"));
        assert!(text.len() < 4 * CHARS_MAX);
    }
}
