//! Ten panels over access logs, in the languages of all who are asked.

/// The week of the corpus, and the steps that a panel of some thousand points has.
const RANGE: &str = "start=2026-03-02T00:00:00Z&end=2026-03-09T00:00:00Z&step=600&limit=100";

/// The end of the week.
const INSTANT: &str = "time=2026-03-09T00:00:00Z";

/// How Loki finds fields of an access log: its lines are parsed when they are asked for.
const LOKI_PARSER: &str = r#" | pattern `<remote_addr> - <_> [<_>] "<_> <path> <_>" <status> <bytes> "<referer>" "<_>" "<host>"`"#;

/// One panel.
pub(super) struct Panel {
    pub(super) name: &'static str,
    /// `query` or `query_range`, and the rest of the parameters.
    pub(super) endpoint: &'static str,
    pub(super) times: &'static str,
    /// LogQL with fields as labels; [`SELECTOR`] stands for all requests.
    query: &'static str,
    /// Whether fields are looked at, for which Loki parses.
    has_fields: bool,
    /// The same in LogsQL.
    pub(super) logsql: &'static str,
}

/// All requests.
const SELECTOR: &str = r#"{app="nginx"}"#;

impl Panel {
    /// In LogQL, where fields are labels.
    pub(super) fn of_logpond(&self) -> String {
        self.query.to_owned()
    }

    /// In LogQL, where lines are parsed first, and what is no number is left out: it would fail the query.
    pub(super) fn of_loki(&self) -> String {
        if !self.has_fields {
            return self.query.to_owned();
        }
        let query = self
            .query
            .replace(SELECTOR, &format!("{SELECTOR}{LOKI_PARSER}"));
        let without_errors = |query: String, stage: &str| {
            query.replace(stage, &format!(r#"{stage} | __error__="""#))
        };
        let query = without_errors(query, "| unwrap bytes");
        without_errors(query, "| status >= 500")
    }
}

const fn panel(
    name: &'static str,
    (endpoint, times): (&'static str, &'static str),
    query: &'static str,
    has_fields: bool,
    logsql: &'static str,
) -> Panel {
    Panel {
        name,
        endpoint,
        times,
        query,
        has_fields,
        logsql,
    }
}

const OVER_TIME: (&str, &str) = ("query_range", RANGE);
const OF_ALL: (&str, &str) = ("query", INSTANT);

pub(super) const PANELS: [Panel; 10] = [
    panel(
        "requests",
        OVER_TIME,
        r#"sum(count_over_time({app="nginx"}[10m]))"#,
        false,
        "app:=nginx | stats by (_time:10m) count()",
    ),
    panel(
        "requests by status",
        OVER_TIME,
        r#"sum by (status) (count_over_time({app="nginx"}[10m]))"#,
        true,
        "app:=nginx | stats by (_time:10m, status) count()",
    ),
    panel(
        "requests by virtual host",
        OVER_TIME,
        r#"sum by (host) (count_over_time({app="nginx"}[10m]))"#,
        true,
        "app:=nginx | stats by (_time:10m, host) count()",
    ),
    panel(
        "outbound bytes by virtual host",
        OVER_TIME,
        r#"sum by (host) (sum_over_time({app="nginx"} | unwrap bytes [10m]))"#,
        true,
        "app:=nginx | stats by (_time:10m, host) sum(bytes)",
    ),
    panel(
        "errors by virtual host",
        OVER_TIME,
        r#"sum by (host) (count_over_time({app="nginx"} | status >= 500 [10m]))"#,
        true,
        "app:=nginx status:>=500 | stats by (_time:10m, host) count()",
    ),
    panel(
        "95th percentile of bytes",
        OVER_TIME,
        r#"quantile_over_time(0.95, {app="nginx"} | unwrap bytes [10m]) by (host)"#,
        true,
        "app:=nginx | stats by (_time:10m, host) quantile(0.95, bytes)",
    ),
    panel(
        "top referers, own pages excluded",
        OF_ALL,
        r#"topk(10, sum by (referer) (count_over_time({app="nginx"} | referer!="-" | referer!~"https?://[^/]*semicomplete.com.*" [7d])))"#,
        true,
        r#"app:=nginx !referer:=- !referer:~"^https?://[^/]*semicomplete.com" | stats by (referer) count() hits | sort by (hits desc) limit 10"#,
    ),
    panel(
        "top paths",
        OF_ALL,
        r#"topk(10, sum by (path) (count_over_time({app="nginx"}[7d])))"#,
        true,
        "app:=nginx | stats by (path) count() hits | sort by (hits desc) limit 10",
    ),
    panel(
        "distinct clients",
        OF_ALL,
        r#"count(sum by (remote_addr) (count_over_time({app="nginx"}[7d])))"#,
        true,
        "app:=nginx | stats count_uniq(remote_addr)",
    ),
    panel(
        "last errors",
        OVER_TIME,
        r#"{app="nginx"} | status >= 500"#,
        true,
        "app:=nginx status:>=500 | sort by (_time desc) limit 100",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loki_parses_where_fields_are_looked_at() {
        let [requests, _, _, bytes, ..] = &PANELS;
        assert_eq!(requests.of_loki(), requests.of_logpond());
        let query = bytes.of_loki();
        assert!(query.contains("{app=\"nginx\"} | pattern `"), "{query}");
        assert!(
            query.contains("| unwrap bytes | __error__=\"\" [10m]"),
            "{query}"
        );
    }
}
