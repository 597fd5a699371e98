//! Records in memory, and answers as text.

use std::sync::{Arc, Mutex};

use logpond_record::{Id, Message, Record, Shape, TimeSource, Timestamp, Value};
use logpond_search::aggregate::FieldTypes;
use logpond_search::columns::ColumnsBuilder;
use logpond_sql::{
    Answer, Format, PatternRow, RecordBatch, Scan, SchemaRef, Source, Sql, SqlError, Stop, Tables,
    Take, Writer,
};

/// So many records, of which it gives all whatever is wanted.
#[derive(Debug)]
pub(crate) struct Records {
    count: usize,
    pub(crate) scans: Mutex<Vec<String>>,
}

impl Records {
    pub(crate) fn new(count: usize) -> Arc<Records> {
        Arc::new(Records {
            count,
            scans: Mutex::default(),
        })
    }

    fn record(number: usize) -> Record<'static> {
        let mixed = number.wrapping_mul(0x9e37_79b9) % 1_000_003;
        Record {
            id: Id(number as u128),
            time: Timestamp(number as i64),
            time_source: TimeSource::Received,
            received: Timestamp(0),
            message: Message::Part(Value::Str(format!("message {mixed:07}").into())),
            shape: Arc::new(Shape::new("⟨_msg:t⟩ n=⟨n:i⟩").unwrap_or_else(|_| Shape::text())),
            values: vec![Value::Null, Value::Int(mixed as i64)],
            fixes: Vec::new(),
            labels: Vec::new(),
            whole: None,
        }
    }
}

impl Source for Records {
    fn tables(&self) -> Result<Tables, SqlError> {
        let mut fields = FieldTypes::new(false);
        fields.add(&Records::record(0));
        Ok(Tables {
            fields,
            views: Vec::new(),
        })
    }

    fn patterns(&self) -> Result<Vec<PatternRow>, SqlError> {
        Ok(Vec::new())
    }

    fn scan(&self, scan: &Scan, take: Arc<dyn Take>) -> Result<(), SqlError> {
        let columns: Vec<&str> = scan.columns.iter().map(|column| &*column.name).collect();
        let told = format!(
            "{} [{}] {:?} {:?}",
            scan.filter,
            columns.join(" "),
            scan.order,
            scan.limit
        );
        self.scans.lock().unwrap().push(told);
        let mut builder = ColumnsBuilder::new(Arc::clone(&scan.columns));
        for number in 0..self.count {
            builder.add(&Records::record(number));
            if builder.is_full() && !take.take(builder.take()) {
                return Ok(());
            }
        }
        take.take(builder.take());
        Ok(())
    }
}

/// Collects its rows as text.
#[derive(Default)]
pub(crate) struct TextSink {
    pub(crate) writer: Option<Writer>,
    pub(crate) text: Vec<u8>,
    pub(crate) rows: usize,
    pub(crate) rows_max: usize,
}

impl Answer for TextSink {
    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Stop> {
        self.writer = Writer::new(Format::Csv, schema, &mut self.text).ok();
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Stop> {
        if let Some(writer) = &mut self.writer {
            writer.write(batch, &mut self.text).map_err(|_| Stop)?;
        }
        self.rows += batch.num_rows();
        if self.rows > self.rows_max && self.rows_max > 0 {
            Err(Stop)
        } else {
            Ok(())
        }
    }

    fn check(&mut self) -> Result<(), Stop> {
        Ok(())
    }
}

pub(crate) fn run(sql: &Sql, records: &Arc<Records>, statement: &str) -> Result<String, SqlError> {
    let mut kept = TextSink::default();
    let source: Arc<dyn Source> = records.clone();
    sql.run(statement, source, &mut kept)?;
    Ok(String::from_utf8(kept.text).unwrap())
}
