//! Columns as Arrow has them. Bytes that are no UTF-8 become U+FFFD, as in all answers that are text.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions,
    StringViewBuilder, TimestampNanosecondArray, new_null_array,
};
use datafusion::arrow::buffer::{Buffer, NullBuffer};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;
use logpond_search::columns::{ColumnKind, Columns};
use logpond_segment::rows::{Column, NULL, Numbers, StringColumn};

use crate::layout::{ZONE, data_type};

/// Rows as a batch: columns of these kinds, called as in `schema`. Texts in a column of another type are
/// what they say in it, or null. Times in a column of whole numbers are seconds since 1970.
pub(crate) fn batch(
    columns: Columns,
    kinds: &[ColumnKind],
    schema: &SchemaRef,
) -> Result<RecordBatch, ArrowError> {
    let rows = columns.rows;
    let columns = columns.columns.into_iter().zip(kinds);
    let columns = columns.zip(schema.fields());
    let arrays: Result<Vec<ArrayRef>, _> = columns
        .map(|((column, kind), field)| {
            if let (Column::Ints(times), ColumnKind::Time, DataType::Int64) =
                (&column, kind, field.data_type())
            {
                return Ok(seconds(times));
            }
            let array = array(column, *kind, rows)?;
            cast_with_options(&array, field.data_type(), &CastOptions::default())
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays?, &options)
}

fn array(column: Column, kind: ColumnKind, rows: usize) -> Result<ArrayRef, ArrowError> {
    Ok(match (column, kind) {
        (Column::Ints(ints), ColumnKind::Time) => {
            let nulls = nulls(&ints);
            let times = TimestampNanosecondArray::new(ints.values.into(), nulls);
            Arc::new(times.with_timezone(ZONE))
        }
        (Column::Ints(ints), ColumnKind::Int) => {
            let nulls = nulls(&ints);
            Arc::new(Int64Array::new(ints.values.into(), nulls))
        }
        (Column::Floats(floats), ColumnKind::Float) => {
            let nulls = nulls(&floats);
            Arc::new(Float64Array::new(floats.values.into(), nulls))
        }
        (Column::Bools(bools), ColumnKind::Bool) => {
            let nulls = nulls(&bools);
            Arc::new(BooleanArray::new(bools.values.into(), nulls))
        }
        (Column::Strings(strings), ColumnKind::Text) => texts(&strings)?,
        // A source gives columns of the kinds that it was asked for.
        (_, kind) => new_null_array(&data_type(kind), rows),
    })
}

/// The seconds of times, those before 1970 rounded down as the others.
fn seconds(times: &Numbers<i64>) -> ArrayRef {
    let seconds = times.values.iter().map(|ns| ns.div_euclid(1_000_000_000));
    let seconds: Vec<i64> = seconds.collect();
    Arc::new(Int64Array::new(seconds.into(), nulls(times)))
}

/// The rows of a batch, so many at a time. Each piece holds only texts of its own: whoever counts what it keeps
/// would count those of the whole batch for each.
pub(crate) fn pieces(batch: &RecordBatch, rows_max: usize) -> Result<Vec<RecordBatch>, ArrowError> {
    let rows = batch.num_rows();
    if rows <= rows_max {
        return Ok(vec![batch.clone()]);
    }
    let starts = (0..rows).step_by(rows_max);
    let piece = |from| {
        let piece = batch.slice(from, rows_max.min(rows - from));
        let columns = piece.columns().iter().map(own_texts).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(piece.num_rows()));
        RecordBatch::try_new_with_options(piece.schema(), columns, &options)
    };
    starts.map(piece).collect()
}

fn own_texts(column: &ArrayRef) -> ArrayRef {
    let Some(texts) = column.as_string_view_opt() else {
        return Arc::clone(column);
    };
    let held: usize = texts.data_buffers().iter().map(Buffer::len).sum();
    let used: usize = texts.lengths().map(|length| length as usize).sum();
    if held > used {
        Arc::new(texts.gc())
    } else {
        // Texts that many rows have are there once.
        Arc::clone(column)
    }
}

fn nulls<T>(numbers: &Numbers<T>) -> Option<NullBuffer> {
    (!numbers.valid.is_empty()).then(|| NullBuffer::from(numbers.valid.as_slice()))
}

/// Each distinct text is copied once, however many rows have it.
fn texts(strings: &StringColumn) -> Result<ArrayRef, ArrowError> {
    let mut used: Vec<u32> = strings
        .codes
        .iter()
        .copied()
        .filter(|code| *code != NULL)
        .collect();
    used.sort_unstable();
    used.dedup();
    let mut block: Vec<u8> = Vec::new();
    let mut places: Vec<(u32, u32)> = Vec::with_capacity(used.len());
    for code in &used {
        let from = block.len();
        for chunk in strings.values.get(*code).utf8_chunks() {
            block.extend_from_slice(chunk.valid().as_bytes());
            if !chunk.invalid().is_empty() {
                block.extend_from_slice("\u{fffd}".as_bytes());
            }
        }
        let place = (u32::try_from(from), u32::try_from(block.len() - from));
        let (Ok(from), Ok(bytes)) = place else {
            let what = "the texts of a block are larger than 4 GiB";
            return Err(ArrowError::InvalidArgumentError(what.into()));
        };
        places.push((from, bytes));
    }
    let mut builder = StringViewBuilder::with_capacity(strings.codes.len());
    let block = builder.append_block(Buffer::from_vec(block));
    for code in &strings.codes {
        match used.binary_search(code) {
            Ok(at) => builder.try_append_view(block, places[at].0, places[at].1)?,
            Err(_) => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Array;
    use datafusion::arrow::array::StringViewArray;
    use datafusion::arrow::datatypes::{Field, Schema};
    use logpond_segment::rows::Strings;

    use super::*;

    #[test]
    fn texts_are_those_of_the_column() {
        let mut values = Strings::default();
        let long = "a text that is longer than twelve bytes";
        for text in ["", "short", long] {
            values.push(text.as_bytes());
        }
        values.push(b"a\xff\xfeb");
        let strings = StringColumn {
            codes: vec![2, NULL, 0, 1, 2, 3],
            values: Arc::new(values),
        };
        let array = texts(&strings).unwrap();
        let found: Vec<_> = array.as_string_view().iter().collect();
        let odd = "a\u{fffd}\u{fffd}b";
        let expected = [
            Some(long),
            None,
            Some(""),
            Some("short"),
            Some(long),
            Some(odd),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn pieces_hold_no_texts_of_others() {
        let text = |number: usize| format!("a text that is longer than twelve bytes {number}");
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..5000).map(text)));
        let batch = RecordBatch::try_from_iter([("a", texts)]).unwrap();
        let pieces = pieces(&batch, 2048).unwrap();
        let rows: Vec<usize> = pieces.iter().map(RecordBatch::num_rows).collect();
        assert_eq!(rows, [2048, 2048, 904]);
        let bytes = |batch: &RecordBatch| batch.get_array_memory_size();
        let all: usize = pieces.iter().map(bytes).sum();
        assert!(all < bytes(&batch) * 3 / 2, "{all}");
        assert_eq!(pieces[2].column(0).as_string_view().value(903), text(4999));
    }

    #[test]
    fn a_batch_has_rows_without_columns() {
        let schema: SchemaRef = Arc::new(Schema::empty());
        let columns = Columns {
            rows: 5,
            ..Columns::default()
        };
        assert_eq!(batch(columns, &[], &schema).unwrap().num_rows(), 5);
    }

    #[test]
    fn numbers_keep_their_places() {
        let kinds = [
            ColumnKind::Int,
            ColumnKind::Time,
            ColumnKind::Bool,
            ColumnKind::Float,
        ];
        let fields = kinds.map(|kind| Field::new(format!("{kind:?}"), data_type(kind), true));
        let schema: SchemaRef = Arc::new(Schema::new(fields.to_vec()));
        let ints = Numbers {
            values: vec![1, 0],
            valid: vec![true, false],
        };
        let columns = Columns {
            rows: 2,
            columns: vec![
                Column::Ints(ints.clone()),
                Column::Ints(ints),
                Column::Absent,
                Column::Floats(Numbers {
                    values: vec![0.5, 1.5],
                    valid: Vec::new(),
                }),
            ],
            unfit: 0,
        };
        let batch = batch(columns, &kinds, &schema).unwrap();
        let nulls: Vec<_> = batch
            .columns()
            .iter()
            .map(|array| array.null_count())
            .collect();
        assert_eq!(nulls, [1, 1, 2, 0]);
    }
}
