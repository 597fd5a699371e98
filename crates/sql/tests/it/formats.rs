//! Answers as bytes, over a source in memory.

use std::sync::Arc;

use crate::source::Records;
use logpond_sql::{Answer, Format, RecordBatch, SchemaRef, Source, Sql, Stop, Writer};

/// Writes an answer, or says why it cannot be written.
struct AnswerWriter {
    format: Format,
    writer: Option<Result<Writer, String>>,
    bytes: Vec<u8>,
}

impl Answer for AnswerWriter {
    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Stop> {
        self.writer = Some(Writer::new(self.format, schema, &mut self.bytes));
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Stop> {
        match &mut self.writer {
            Some(Ok(writer)) => writer.write(batch, &mut self.bytes).map_err(|_| Stop),
            _ => Err(Stop),
        }
    }

    fn check(&mut self) -> Result<(), Stop> {
        Ok(())
    }
}

fn written(sql: &Sql, format: Format, statement: &str) -> Result<String, String> {
    let source: Arc<dyn Source> = Records::new(3);
    let mut written = AnswerWriter {
        format,
        writer: None,
        bytes: Vec::new(),
    };
    let result = sql.run(statement, source, &mut written);
    written.writer.unwrap()?;
    result.unwrap();
    Ok(String::from_utf8_lossy(&written.bytes).into_owned())
}

#[test]
fn values_are_written_that_a_form_does_not_have() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let odd = "'NaN'::double AS a, '-Infinity'::double AS b, 1.5e-300 AS c, 'Infinity'::float AS d";
    let table = [
        (
            Format::Csv,
            format!("SELECT {odd}"),
            "a,b,c,d\nNaN,-inf,1.5e-300,inf\n",
        ),
        (
            Format::Json,
            format!("SELECT {odd}"),
            "{\"a\":\"NaN\",\"b\":\"-inf\",\"c\":1.5e-300,\"d\":\"inf\"}\n",
        ),
        (
            Format::Json,
            "SELECT [1.5, 'NaN'::double] AS a, NULL::double AS b".to_owned(),
            "{\"a\":[1.5,\"NaN\"],\"b\":null}\n",
        ),
        (
            Format::Csv,
            "SELECT [1, NULL, 3] AS a, struct(1 AS x, 'y\"' AS z) AS b, map {'k': 2} AS c"
                .to_owned(),
            "a,b,c\n\"[1,null,3]\",\"{\"\"x\"\":1,\"\"z\"\":\"\"y\\\"\"\"\"}\",\"{\"\"k\"\":2}\"\n",
        ),
        (
            Format::Csv,
            "SELECT NULL::int AS a, array_agg(n) AS b FROM logs WHERE false".to_owned(),
            "a,b\n,\n",
        ),
        (
            Format::Csv,
            "SELECT INTERVAL '1 day' AS a".to_owned(),
            "a\n1 days\n",
        ),
    ];
    for (format, statement, expected) in table {
        let text = written(&sql, format, &statement);
        assert_eq!(text.as_deref(), Ok(expected), "{statement}");
    }
}

#[test]
fn what_a_form_cannot_say_is_said_at_the_beginning() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    for statement in [
        "SELECT 1 AS a, INTERVAL '1 day' AS wait",
        "SELECT [INTERVAL '1 day'] AS wait FROM logs",
        "SELECT struct(n, INTERVAL '1 month') AS wait FROM logs",
    ] {
        let error = written(&sql, Format::Parquet, statement).unwrap_err();
        assert!(error.contains("column wait"), "{statement}: {error}");
    }
    let whole = written(
        &sql,
        Format::Parquet,
        "SELECT n, time - time AS a FROM logs",
    )
    .unwrap();
    assert!(whole.is_empty(), "a row group is kept until it is full");
}

#[test]
fn names_and_texts_of_cells_are_rewritten() {
    fn marked(text: &str) -> std::borrow::Cow<'_, str> {
        if text.starts_with('=') {
            format!("'{text}").into()
        } else {
            text.into()
        }
    }
    struct MarkedWriter(Option<Writer>, Vec<u8>);
    impl Answer for MarkedWriter {
        fn begin(&mut self, schema: &SchemaRef) -> Result<(), Stop> {
            self.0 = Writer::of_cells(schema, marked, &mut self.1).ok();
            Ok(())
        }

        fn rows(&mut self, batch: &RecordBatch) -> Result<(), Stop> {
            let writer = self.0.as_mut().ok_or(Stop)?;
            writer.write(batch, &mut self.1).map_err(|_| Stop)
        }

        fn check(&mut self) -> Result<(), Stop> {
            Ok(())
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let source: Arc<dyn Source> = Records::new(3);
    let mut written = MarkedWriter(None, Vec::new());
    let statement = "SELECT '=1+1' AS a, 'b' AS \"=x\", -5 AS c, ['=2'] AS d, NULL::text AS e, \
        arrow_cast('=3', 'Dictionary(Int32, Utf8)') AS f";
    sql.run(statement, source, &mut written).unwrap();
    let expected = "a,'=x,c,d,e,f\n'=1+1,b,-5,\"[\"\"=2\"\"]\",,'=3\n";
    assert_eq!(String::from_utf8(written.1).unwrap(), expected);
}
