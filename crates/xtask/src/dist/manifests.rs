//! The manifests for Kubernetes without Helm: those that the chart makes.

use std::process::Command;

use crate::run::{Outcome, find_program, output, root};

/// A file of manifests below `contrib/kubernetes`, the values of the chart that it is made with, and its first line.
struct Manifests {
    file: &'static str,
    values: &'static [&'static str],
    title: &'static str,
}

const MANIFESTS: [Manifests; 2] = [
    Manifests {
        file: "logpond.yaml",
        values: &[],
        title: "A server and a forwarder on each node, as the chart in contrib/helm/logpond makes them with its defaults.",
    },
    Manifests {
        file: "logpond-cluster.yaml",
        values: &["--set", "cluster.enabled=true"],
        title: "Three servers with two copies of each record, and a forwarder on each node, as the chart in contrib/helm/logpond makes them.",
    },
];

const CHART: &str = "contrib/helm/logpond";

/// The version of Kubernetes that they are made for.
const KUBERNETES: &str = "1.30";

/// Set to write the files anew.
const UPDATE: &str = "UPDATE_EXPECT";

/// The output of the chart with these values.
fn template(values: &[&str]) -> Outcome<String> {
    let chart = ["template", "logpond", CHART, "--kube-version", KUBERNETES];
    output(
        Command::new("helm")
            .args(chart)
            .args(values)
            .current_dir(root()),
    )
}

/// True if helm is there; says that it is not.
fn has_helm() -> bool {
    let is_there = find_program("helm").is_some();
    if !is_there {
        eprintln!("skipped: the chart was not tried because helm is not installed");
    }
    is_there
}

/// The chart's manifests without what tells of Helm.
fn rendered(manifests: &Manifests) -> String {
    let text = template(manifests.values).unwrap();
    let is_of_helm =
        |line: &str| line.starts_with("# Source:") || line.contains("/managed-by: Helm");
    let mut all = format!(
        "# {}\n# Replace the image by one of your registry: kubectl apply --filename {}\n",
        manifests.title, manifests.file
    );
    for line in text.lines().filter(|line| !is_of_helm(line)) {
        all += line;
        all.push('\n');
    }
    all
}

#[test]
fn manifests_are_those_of_the_chart() {
    if !has_helm() {
        return;
    }
    let strict = ["lint", "--strict", CHART];
    output(Command::new("helm").args(strict).current_dir(root())).unwrap();
    for manifests in MANIFESTS {
        let path = root().join("contrib/kubernetes").join(manifests.file);
        let text = rendered(&manifests);
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let known = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            known == text,
            "{} is old; write it anew by {UPDATE}=1",
            path.display()
        );
    }
}

/// Certificates of nodes name addresses, which pods change: with both the nodes would not find each other.
#[test]
fn a_chart_of_a_cluster_with_certificates_is_refused() {
    if !has_helm() {
        return;
    }
    let values = ["--set", "cluster.enabled=true,http.tlsSecret=x"];
    let refused = template(&values).unwrap_err();
    assert!(refused.contains("exclude each other"), "{refused}");
}

/// Alerts on metrics, and the same in the chart.
const RULES: &str = "contrib/prometheus/logpond.rules.yml";
const RULES_OF_CHART: &str = "contrib/helm/logpond/files/logpond.rules.yml";

fn text_of(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Names of metrics in an expression.
fn metrics_of(expression: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = expression.split(move |c: char| !is_name(c));
    words.filter(|word| word.starts_with("logpond_"))
}

#[test]
fn alerts_are_on_metrics_that_there_are_and_each_has_a_remedy() {
    let rules = text_of(RULES);
    assert_eq!(rules, text_of(RULES_OF_CHART));
    let (metrics, guide) = (
        text_of("docs/reference/metrics.md"),
        text_of("docs/guides/operate.md"),
    );
    let after = |name: &str| {
        let found = rules
            .lines()
            .filter_map(|line| line.trim().split_once(name));
        let values: Vec<&str> = found.map(|(_, value)| value).collect();
        values
    };
    let (alerts, expressions) = (after("alert: "), after("expr: "));
    assert!(alerts.len() > 20 && alerts.len() == expressions.len());
    for alert in alerts {
        assert!(guide.contains(&format!("| `{alert}` |")), "{alert}");
    }
    for metric in expressions.into_iter().flat_map(metrics_of) {
        assert!(metrics.contains(&format!("| `{metric}` |")), "{metric}");
    }
}
