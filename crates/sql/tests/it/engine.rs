//! Statements over a source in memory: what a source is asked for, and that memory is bounded. What
//! answers are right is tested end to end, over real servers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::source::{Records, TextSink, run};
use logpond_record::Value;
use logpond_search::aggregate::FieldTypes;
use logpond_search::columns::ColumnsBuilder;
use logpond_sql::{
    Answer, Blame, PatternRow, RecordBatch, STATEMENTS_MAX, Scan, SchemaRef, Source, Sql, SqlError,
    Stop, Tables, Take,
};

#[test]
fn sources_are_asked_for_what_is_wanted() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let table = [
        ("SELECT count(*) FROM logs", "* [] None None"),
        ("SELECT n FROM logs", "* [n] None None"),
        ("SELECT n FROM logs LIMIT 3", "* [n] None Some(3)"),
        ("SELECT n FROM logs WHERE n = 3", "n=3 [n] None None"),
        ("SELECT count(*) FROM logs WHERE n = 3", "n=3 [] None None"),
        (
            "SELECT count(*) FROM logs WHERE n = 3 AND n + 1 = 4",
            "n=3 [n] None None",
        ),
        (
            "SELECT n FROM logs WHERE message LIKE '%a%' ORDER BY time LIMIT 2",
            "_msg:\"a\" [_time n] Some(Forward) Some(2)",
        ),
        (
            "SELECT line FROM logs ORDER BY time DESC",
            "* [_time _raw] Some(Backward) None",
        ),
        ("SELECT n FROM logs ORDER BY n LIMIT 1", "* [n] None None"),
        (
            "SELECT message FROM logs WHERE message LIKE 'a%'",
            "_msg:\"a\" [_msg] None None",
        ),
    ];
    for (statement, expected) in table {
        let records = Records::new(10);
        run(&sql, &records, statement).unwrap();
        assert_eq!(*records.scans.lock().unwrap(), [expected], "{statement}");
    }
}

#[test]
fn what_does_not_fit_into_memory_is_spilled() {
    let directory = tempfile::tempdir().unwrap();
    let spill = directory.path().join("spill");
    let records = Records::new(400_000);
    let statement = "SELECT message FROM logs ORDER BY message DESC";
    let large = run(
        &Sql::new(directory.path().join("none")),
        &records,
        statement,
    )
    .unwrap();
    assert_eq!(large.lines().count(), 400_001);
    let sql = Sql::with_memory(spill.clone(), 12 << 20);
    let plan = run(&sql, &records, &format!("EXPLAIN ANALYZE {statement}")).unwrap();
    let spilled = plan.split("spill_count=").skip(1);
    let spilled = spilled.filter(|rest| !rest.starts_with('0')).count();
    assert!(spilled > 0, "{plan}");
    assert!(run(&sql, &records, statement).unwrap() == large);
    let left = std::fs::read_dir(&spill).unwrap().flatten();
    let left = left.flat_map(|entry| std::fs::read_dir(entry.path()).unwrap());
    assert_eq!(left.count(), 0);
    // Where nothing can be spilled, the statement is refused and nothing else happens.
    let tiny = Sql::with_memory(spill, 64 << 10);
    let error = run(&tiny, &records, statement).unwrap_err();
    assert_eq!(error.blame, Blame::Memory);
    assert!(
        error.message.starts_with("the statement needs more memory"),
        "{error}"
    );
    assert!(run(&tiny, &records, "SELECT count(*) FROM logs").is_ok());
}

/// A full disk takes no files: what needs none is answered, and the rest once there is room.
#[test]
fn statements_without_a_place_to_spill_are_answered() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("place");
    std::fs::write(&place, "not a directory").unwrap();
    let records = Records::new(400_000);
    let sql = Sql::with_memory(place.join("spill"), 12 << 20);
    assert!(run(&sql, &records, "SELECT count(*) FROM logs").is_ok());
    let statement = "SELECT message FROM logs ORDER BY message DESC";
    let error = run(&sql, &records, statement).unwrap_err();
    assert_eq!(error.blame, Blame::Memory, "{error}");
    std::fs::remove_file(&place).unwrap();
    std::fs::create_dir(&place).unwrap();
    let answer = run(&sql, &records, statement);
    assert!(answer.is_ok(), "{:?}", answer.err());
}

/// A sort needs some memory for each batch and for each file that it merges: with long rows these must be small.
#[test]
fn long_rows_are_sorted_in_a_third_of_their_memory() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::with_memory(directory.path().join("spill"), 40 << 20);
    let records = Records::new(150_000);
    for statement in [
        "SELECT m FROM (SELECT n, repeat(message, 60) AS m FROM logs) ORDER BY n DESC",
        "SELECT max(r) FROM (SELECT m, row_number() OVER (ORDER BY m) AS r \
         FROM (SELECT repeat(message, 60) AS m FROM logs)) WHERE m IS NOT NULL",
        "SELECT count(*), max(c) FROM (SELECT repeat(message, 20) AS m, count(*) AS c FROM logs GROUP BY m)",
    ] {
        let answer = run(&sql, &records, statement);
        assert!(answer.is_ok(), "{statement}: {answer:?}");
    }
}

/// Two writers of an exchange that spill into one pool wait for its reader, and that for them (apache/datafusion issue
/// 24883): one run in eight stood still.
#[test]
fn groups_that_are_spilled_between_tasks_end() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::with_memory(directory.path().join("spill"), 24 << 20);
    let sql = sql.silent_for(Duration::from_secs(60));
    let records = Records::new(100_000);
    let statement = "SELECT count(*), max(c) FROM \
        (SELECT repeat(message, 60) AS m, count(*) AS c FROM logs GROUP BY m)";
    let plan = run(&sql, &records, &format!("EXPLAIN ANALYZE {statement}")).unwrap();
    let exchanges = plan.split("RepartitionExec").skip(1);
    let inputs = exchanges.filter_map(|rest| rest.split("input_partitions=").nth(1));
    let inputs: Vec<bool> = inputs.map(|rest| rest.starts_with('1')).collect();
    assert!(!inputs.contains(&false), "{plan}");
    for _ in 0..3 {
        let answer = run(&sql, &records, statement).unwrap();
        assert_eq!(answer, "count(*),max(c)\n100000,1\n");
    }
}

#[test]
fn who_stops_reading_ends_the_statement() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let mut kept = TextSink {
        rows_max: 5000,
        ..TextSink::default()
    };
    let endless: Arc<dyn Source> = Records::new(usize::MAX);
    let error = sql
        .run("SELECT n FROM logs", endless, &mut kept)
        .unwrap_err();
    assert_eq!(error.blame, Blame::Cancelled);
    // It has given back what it took.
    for _ in 0..10 {
        assert!(run(&sql, &Records::new(1), "SELECT 1").is_ok());
    }
}

/// A reader that is gone at the first check.
#[derive(Default)]
struct GoneReader;

impl Answer for GoneReader {
    fn begin(&mut self, _: &SchemaRef) -> Result<(), Stop> {
        Ok(())
    }

    fn rows(&mut self, _: &RecordBatch) -> Result<(), Stop> {
        Ok(())
    }

    fn check(&mut self) -> Result<(), Stop> {
        Err(Stop)
    }
}

/// Statements that compute for hours, and have no rows until then.
const ENDLESS: [&str; 9] = [
    "SELECT count(*) FROM logs a JOIN logs b ON a.n % 2 = b.n % 2",
    "SELECT count(*) FROM logs a JOIN logs b ON a.n % 2 = b.n % 2 WHERE a.n < b.n - 2000000",
    "SELECT count(*) FROM logs a, logs b WHERE a.message < b.message",
    "SELECT count(*) FROM logs a, logs b WHERE a.message || 'x' = b.message || a.message",
    "SELECT a.n FROM logs a LEFT JOIN logs b ON a.n > b.n + 2000000 AND a.message > b.message ORDER BY a.n",
    "SELECT count(*) FROM logs a WHERE EXISTS (SELECT 1 FROM logs b WHERE b.n > a.n + 2000000)",
    "SELECT count(*) FROM logs a, logs b, logs c",
    "SELECT max(a.n + b.n) FROM logs a CROSS JOIN logs b",
    "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
];

/// An operator calls the ones below it in a loop that may last for hours without a wait.
#[test]
fn joins_end_when_nobody_waits_for_them() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(300_000);
    for statement in ENDLESS {
        let source: Arc<dyn Source> = records.clone();
        let error = sql.run(statement, source, &mut GoneReader).unwrap_err();
        assert_eq!(error.blame, Blame::Cancelled, "{statement}: {error}");
        // All the room that there is, soon after: else the next ones would be refused.
        while !sql.is_idle() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn who_computes_for_too_long_without_a_row_is_ended() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill")).silent_for(Duration::from_millis(200));
    let records = Records::new(300_000);
    let error = run(&sql, &records, ENDLESS[0]).unwrap_err();
    assert_eq!(error.blame, Blame::Statement);
    assert!(error.message.contains("without a further row"), "{error}");
}

/// Such a join holds one of its sides.
#[test]
fn a_join_that_does_not_fit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::with_memory(directory.path().join("spill"), 4 << 20);
    let records = Records::new(100_000);
    let statement = "SELECT count(*) FROM logs a, logs b, logs c WHERE a.n + b.n + c.n < 0";
    let error = run(&sql, &records, statement).unwrap_err();
    let expected = "the statement needs more memory";
    assert!(error.message.starts_with(expected), "{error}");
}

#[test]
fn joins_are_what_they_are_between_checkpoints() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(40);
    let table = [
        ("SELECT count(*) FROM logs a JOIN logs b USING (n)", "40"),
        ("SELECT count(*) FROM logs a, logs b", "1600"),
        ("SELECT count(*) FROM logs a, logs b WHERE a.n < b.n", "780"),
        (
            "SELECT count(*) FROM logs a LEFT JOIN logs b ON a.n < b.n AND b.message < 'a'",
            "40",
        ),
        (
            "SELECT count(*) FROM logs a LEFT JOIN logs b ON true",
            "1600",
        ),
        (
            "SELECT count(*) FROM logs a WHERE EXISTS (SELECT 1 FROM logs b WHERE b.n > a.n)",
            "39",
        ),
        (
            "SELECT count(*) FROM logs a WHERE EXISTS (SELECT 1 FROM logs b WHERE b.n > 5)",
            "40",
        ),
        (
            "SELECT count(*) FROM logs a JOIN logs b ON a.message = b.message WHERE a.n <= b.n",
            "40",
        ),
    ];
    for (statement, expected) in table {
        let text = run(&sql, &records, statement).unwrap();
        assert_eq!(text.lines().nth(1), Some(expected), "{statement}");
    }
}

#[test]
fn a_statement_reads_only_so_many_tables() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let many = |count: usize| vec!["SELECT n FROM logs"; count].join(" UNION ALL ");
    let records = Records::new(3);
    assert_eq!(run(&sql, &records, &many(16)).unwrap().lines().count(), 49);
    let error = run(&sql, &records, &many(17)).unwrap_err();
    assert!(error.message.contains("more than 16"), "{error}");
}

/// A server lets go of it where it last answered, which may be a task.
#[test]
fn a_task_may_let_go_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    run(&sql, &Records::new(1), "SELECT 1").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async move { drop(sql) });
}

/// Takes rows only when it is given up, as a reader that does not read.
struct StalledReader(Arc<AtomicBool>);

impl Answer for StalledReader {
    fn begin(&mut self, _: &SchemaRef) -> Result<(), Stop> {
        Ok(())
    }

    fn rows(&mut self, _: &RecordBatch) -> Result<(), Stop> {
        while !self.0.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        Err(Stop)
    }

    fn check(&mut self) -> Result<(), Stop> {
        Ok(())
    }
}

/// Gives up a reader that does not read while its own statement waits.
struct WaitingReader(Arc<AtomicBool>);

impl Answer for WaitingReader {
    fn begin(&mut self, _: &SchemaRef) -> Result<(), Stop> {
        Ok(())
    }

    fn rows(&mut self, _: &RecordBatch) -> Result<(), Stop> {
        Ok(())
    }

    fn check(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Stop> {
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn a_waiting_statement_gets_the_place_of_a_reader_that_does_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10);
    let is_given_up: Vec<_> = (0..STATEMENTS_MAX).map(|_| Arc::default()).collect();
    std::thread::scope(|threads| {
        for flag in &is_given_up {
            let (sql, records, mut unread) =
                (&sql, records.clone(), StalledReader(Arc::clone(flag)));
            threads.spawn(move || sql.run("SELECT * FROM logs", records, &mut unread));
        }
        while records.scans.lock().unwrap().len() < STATEMENTS_MAX {
            std::thread::yield_now();
        }
        let mut waits = WaitingReader(Arc::clone(&is_given_up[0]));
        let waited = sql.run("SELECT count(*) FROM logs", records.clone(), &mut waits);
        assert_eq!(waited, Ok(()));
        for flag in &is_given_up {
            flag.store(true, Ordering::Relaxed);
        }
    });
}

/// The source gives all records whatever is wanted, so a condition that is left to it alone counts all.
#[test]
fn a_text_that_a_null_seems_to_have_is_looked_for_again() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    for (condition, expected) in [
        ("message LIKE '%ul%'", "0"),
        ("message LIKE '%null%'", "0"),
        ("contains(message, 'nu')", "0"),
        ("message ~ 'ull'", "0"),
        ("message LIKE '%Null%'", "10"),
        ("contains(message, 'xyz')", "10"),
    ] {
        let statement = format!("SELECT count(*) FROM logs WHERE {condition}");
        let text = run(&sql, &Records::new(10), &statement).unwrap();
        assert_eq!(text.lines().nth(1), Some(expected), "{condition}");
    }
}

/// One record with many fields, and ten with one.
#[derive(Debug, Default)]
struct WideTable(Mutex<Vec<String>>);

impl Source for WideTable {
    fn tables(&self) -> Result<Tables, SqlError> {
        let mut fields = FieldTypes::new(false);
        for number in 0..3000 {
            fields.add_value(&format!("a{number:04}"), &Value::Int(1));
        }
        fields.add_value("zrare", &Value::Int(1));
        for _ in 0..10 {
            fields.add_value("zoften", &Value::Int(1));
        }
        Ok(Tables {
            fields,
            views: Vec::new(),
        })
    }

    fn note(&self, message: String) {
        self.0.lock().unwrap().push(message);
    }

    fn patterns(&self) -> Result<Vec<PatternRow>, SqlError> {
        Ok(Vec::new())
    }

    fn scan(&self, scan: &Scan, take: Arc<dyn Take>) -> Result<(), SqlError> {
        take.take(ColumnsBuilder::new(Arc::clone(&scan.columns)).take());
        Ok(())
    }
}

#[test]
fn a_named_field_has_a_column_however_many_fields_there_are() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let columns = |statement: &str| {
        let source = Arc::new(WideTable::default());
        let mut kept = TextSink::default();
        let records: Arc<dyn Source> = source.clone();
        sql.run(statement, records, &mut kept)
            .unwrap_or_else(|e| panic!("{statement}: {e}"));
        let notes = source.0.lock().unwrap().clone();
        (String::from_utf8(kept.text).unwrap(), notes)
    };
    let (text, notes) =
        columns("SELECT sum(zrare + zoften + a2999) AS s FROM logs WHERE zrare > 0");
    assert_eq!((text.lines().next(), notes.len()), (Some("s"), 0));
    let (text, notes) = columns("SELECT * FROM logs LIMIT 1");
    let header = text.lines().next().unwrap_or_default();
    assert!(
        header.contains("zoften") && header.contains("a0001"),
        "{header}"
    );
    assert!(!header.contains("zrare"), "{header}");
    assert_eq!(
        notes,
        ["954 rare fields are not among the columns of logs: name those that you want"]
    );
    let (text, notes) = columns("DESCRIBE logs");
    assert!(text.contains("zoften") && !text.contains("zrare"));
    assert_eq!(notes.len(), 1);
}
