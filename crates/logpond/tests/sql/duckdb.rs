//! Two engines agree: DuckDB on the files of segments, and SQL over the server that made them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::answers::ask;
use crate::pond::{Scratch, TestServer, files_below};
use crate::surroundings::{corpus, program, python};

/// Statements that mean the same to both. Each orders its rows.
const STATEMENTS: [&str; 65] = [
    "SELECT count(*) FROM logs",
    "SELECT count(status), count(referer), count(query) FROM logs",
    "SELECT count(DISTINCT remote_addr) FROM logs",
    "SELECT count(DISTINCT host), count(DISTINCT path) FROM logs",
    "SELECT sum(bytes), min(bytes), max(bytes) FROM logs",
    "SELECT avg(bytes) FROM logs",
    "SELECT min(time), max(time) FROM logs",
    "SELECT status, count(*) FROM logs GROUP BY status ORDER BY status",
    "SELECT host, count(*) FROM logs GROUP BY host ORDER BY host",
    "SELECT method, count(*) AS n FROM logs GROUP BY method ORDER BY n DESC, method",
    "SELECT host, status, count(*), sum(bytes) FROM logs GROUP BY host, status ORDER BY host, status",
    "SELECT remote_addr, count(*) AS n FROM logs GROUP BY remote_addr ORDER BY n DESC, remote_addr LIMIT 20",
    "SELECT path, count(*) AS n FROM logs GROUP BY path ORDER BY n DESC, path LIMIT 20",
    "SELECT agent, count(*) AS n FROM logs GROUP BY agent ORDER BY n DESC, agent LIMIT 10",
    "SELECT referer, count(*) AS n FROM logs WHERE referer <> '-' GROUP BY referer ORDER BY n DESC, referer LIMIT 10",
    "SELECT date_part('day', time) AS day, count(*) FROM logs GROUP BY day ORDER BY day",
    "SELECT date_trunc('hour', time) AS hour, count(*), sum(bytes) FROM logs GROUP BY hour ORDER BY hour",
    "SELECT date_part('hour', time) AS hour, count(*) FROM logs GROUP BY hour ORDER BY hour",
    "SELECT date_part('dow', time) AS day, count(*) FROM logs GROUP BY day ORDER BY day",
    "SELECT count(*) FROM logs WHERE status = 404",
    "SELECT count(*) FROM logs WHERE status >= 400 AND status < 500",
    "SELECT count(*) FROM logs WHERE status <> 200",
    "SELECT count(*) FROM logs WHERE status IN (301, 302, 304)",
    "SELECT count(*) FROM logs WHERE status NOT IN (200, 304)",
    "SELECT count(*) FROM logs WHERE bytes BETWEEN 1000 AND 5000",
    "SELECT count(*) FROM logs WHERE NOT (bytes > 1000)",
    "SELECT count(*) FROM logs WHERE bytes > 1000 OR status = 404",
    "SELECT count(*) FROM logs WHERE method = 'POST'",
    "SELECT count(*) FROM logs WHERE method <> 'GET' AND status < 400",
    "SELECT count(*) FROM logs WHERE agent LIKE '%Firefox%'",
    "SELECT count(*) FROM logs WHERE agent NOT LIKE '%Mozilla%'",
    "SELECT count(*) FROM logs WHERE agent ILIKE '%firefox%'",
    "SELECT count(*) FROM logs WHERE path LIKE '/%a%'",
    "SELECT count(*) FROM logs WHERE path LIKE '/_'",
    "SELECT count(*) FROM logs WHERE contains(path, 'a') AND starts_with(path, '/')",
    "SELECT count(*) FROM logs WHERE regexp_replace(agent, 'Firefox.[0-9]+', '') <> agent",
    "SELECT count(*) FROM logs WHERE query IS NULL",
    "SELECT count(*) FROM logs WHERE query IS NOT NULL AND status = 200",
    "SELECT count(*) FROM logs WHERE coalesce(query, '') = ''",
    "SELECT host, avg(bytes) AS mean FROM logs GROUP BY host HAVING count(*) > 10 ORDER BY host",
    "SELECT host, max(bytes) - min(bytes) AS span FROM logs WHERE status = 200 GROUP BY host ORDER BY host",
    "SELECT upper(method) || ' ' || CAST(status AS VARCHAR) AS kind, count(*) FROM logs GROUP BY kind ORDER BY kind",
    "SELECT CASE WHEN status < 400 THEN 'good' ELSE 'bad' END AS class, count(*) FROM logs GROUP BY class ORDER BY class",
    "SELECT length(path) AS size, count(*) FROM logs GROUP BY size ORDER BY size",
    "SELECT substr(remote_addr, 1, 3) AS net, count(*) FROM logs GROUP BY net ORDER BY net",
    "SELECT a.host, count(*) FROM logs a JOIN (SELECT host FROM logs GROUP BY host ORDER BY count(*) DESC, host LIMIT 2) b ON a.host = b.host GROUP BY a.host ORDER BY a.host",
    "WITH daily AS (SELECT date_trunc('day', time) AS day, count(*) AS n FROM logs GROUP BY day) SELECT max(n), min(n) FROM daily",
    "SELECT host, status, row_number() OVER (PARTITION BY host ORDER BY count(*) DESC, status) AS place FROM logs GROUP BY host, status ORDER BY host, place",
    "SELECT host, count(*) FILTER (WHERE status >= 400) AS errors FROM logs GROUP BY host ORDER BY host",
    "SELECT median(bytes), round(stddev(bytes), 3) FROM logs",
    "SELECT status, median(bytes), quantile_cont(bytes, 0.9), quantile_disc(bytes, 0.9), quantile_cont(bytes, 0), quantile_cont(bytes, 1) FROM logs GROUP BY status ORDER BY status",
    "SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY bytes), percentile_cont(0.95) WITHIN GROUP (ORDER BY bytes DESC), percentile_disc(0.333) WITHIN GROUP (ORDER BY bytes) FROM logs",
    "SELECT method, percentile_cont(0.123) WITHIN GROUP (ORDER BY bytes / 3.0) FILTER (WHERE status = 200) FROM logs GROUP BY method ORDER BY method",
    "SELECT extract(epoch FROM max(time) - min(time)), extract(day FROM max(time) - min(time)), extract(hour FROM max(time) - min(time)), extract(minute FROM max(time) - min(time)) FROM logs",
    "WITH g AS (SELECT time - lag(time) OVER (ORDER BY time) AS gap FROM logs) SELECT count(gap), extract(epoch FROM max(gap)), count(*) FILTER (WHERE gap > INTERVAL '1 second'), count(*) FILTER (WHERE gap BETWEEN INTERVAL '1 second' AND INTERVAL '1 day') FROM g",
    "SELECT remote_addr, extract(epoch FROM max(time) - min(time)) FROM logs GROUP BY 1 HAVING max(time) - min(time) > INTERVAL '25 hours' ORDER BY max(time) - min(time) DESC, 1 LIMIT 20",
    "WITH g AS (SELECT remote_addr, CASE WHEN time - lag(time) OVER w > INTERVAL '30 minutes' OR lag(time) OVER w IS NULL THEN 1 ELSE 0 END AS new FROM logs WINDOW w AS (PARTITION BY remote_addr ORDER BY time)) SELECT remote_addr, sum(new) AS sessions FROM g GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20",
    "SELECT host, count(DISTINCT status) OVER w, sum(DISTINCT n) OVER w, sum(n) OVER w FROM (SELECT host, status, count(*) AS n FROM logs GROUP BY host, status) WINDOW w AS (PARTITION BY host ORDER BY status ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) ORDER BY host, status",
    "SELECT host, n, median(n) OVER (ORDER BY host ROWS 4 PRECEDING) FROM (SELECT host, count(*) AS n FROM logs GROUP BY host) ORDER BY host",
    "SELECT remote_addr FROM logs WHERE status = 404 EXCEPT SELECT remote_addr FROM logs WHERE status = 200 ORDER BY 1 LIMIT 50",
    "SELECT remote_addr, count(*) FROM logs l WHERE bytes > (SELECT avg(bytes) FROM logs m WHERE m.remote_addr = l.remote_addr) GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20",
    "SELECT x, count(*) FROM (SELECT unnest(string_to_array(path, '/')) AS x FROM logs) WHERE x <> '' GROUP BY x ORDER BY 2 DESC, 1 LIMIT 20",
    "SELECT remote_addr, path, n FROM (SELECT remote_addr, path, count(*) AS n FROM logs GROUP BY 1, 2) QUALIFY row_number() OVER (PARTITION BY path ORDER BY n DESC, remote_addr) = 1 ORDER BY n DESC, path LIMIT 20",
    "SELECT status, method, count(*) FROM logs GROUP BY GROUPING SETS ((status), (method), ()) ORDER BY 1 NULLS LAST, 2 NULLS LAST, 3",
    "SELECT variance(bytes), corr(bytes, status), covar_samp(bytes, status) FROM logs",
];

/// The rows that each statement gives, as DuckDB sees the files.
fn ask_duckdb(python: &Path, files: &[PathBuf], statements: &[String]) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/read_with_duckdb.py");
    let output = Command::new(python)
        .arg(script)
        .arg(serde_json::to_string(statements).unwrap())
        .args(files)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A value in a form that both write: numbers by value, times without their zone.
fn alike(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null => return "NULL".into(),
        other => other.to_string(),
    };
    if let Ok(number) = text.parse::<f64>() {
        return format!("{number:.9e}");
    }
    let is_time = text.len() >= 19 && text.as_bytes()[10] == b'T' && text.ends_with('Z');
    if is_time {
        text.replace('T', " ").trim_end_matches('Z').to_owned()
    } else {
        text
    }
}

#[test]
fn duckdb_and_the_server_agree_in_sql() {
    let Some(python) = python("comparing SQL with DuckDB") else {
        return;
    };
    let Some(corpus) = corpus("nginx", "5M") else {
        return;
    };
    let scratch = Scratch::new("sql-duckdb").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    let lines = fs::read(&corpus.file).unwrap();
    assert_eq!(server.push("text/plain", &lines).unwrap().status, 200);
    server.compact().unwrap();
    let files = files_below(&data.join("segments"), ".parquet");
    let table = "(SELECT * REPLACE (_time AT TIME ZONE 'UTC' AS _time), \
                 _time AT TIME ZONE 'UTC' AS time FROM segments) logs";
    let view = format!("CREATE VIEW logs AS SELECT * FROM {table}");
    let mut statements = vec![view];
    statements.extend(STATEMENTS.map(str::to_owned));
    let expected = ask_duckdb(&python, &files, &statements);
    for (statement, expected) in STATEMENTS.iter().zip(&expected[1..]) {
        let expected: Vec<Vec<String>> = expected
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row.as_array().unwrap().iter().map(alike).collect())
            .collect();
        assert!(!expected.is_empty(), "{statement}");
        let target = format!(
            "/api/v1/sql?columns=true&query={}",
            crate::http::encode(statement)
        );
        let text = server.get(&target).unwrap();
        let mut found = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let columns = found.next().unwrap()["_columns"].take();
        let names = columns
            .as_array()
            .unwrap()
            .iter()
            .map(|column| column["name"].as_str());
        let names: Vec<&str> = names.map(Option::unwrap).collect();
        let rows = found.filter(|line| line.get("_trailer").is_none());
        let found: Vec<Vec<String>> = rows
            .map(|row| names.iter().map(|name| alike(&row[name])).collect())
            .collect();
        assert_eq!(found, expected, "{statement}");
    }
    let (rows, trailer) = ask(&server, "SELECT count(*) AS n FROM logs");
    assert_eq!(
        (&rows[0]["n"], &trailer["complete"]),
        (&corpus.facts["lines"], &Value::Bool(true))
    );
}
