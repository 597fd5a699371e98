//! Rows in another order.

use std::sync::Arc;

use logpond_record::cast;

use super::builder::Rows;
use super::column::{Column, NULL, Numbers, StringColumn, Strings};

impl Rows {
    /// Some of the rows, in this order: one after another in memory, so that whoever goes through them
    /// several times does not wait for memory at each step.
    pub(crate) fn in_order(&self, order: &[u32]) -> Rows {
        Rows {
            time: numbers(&self.time, order),
            received: numbers(&self.received, order),
            number: numbers(&self.number, order),
            source: numbers(&self.source, order),
            time_source: numbers(&self.time_source, order),
            // Plans are made by its codes: they stay as they are.
            shape: codes(&self.shape, order),
            message: strings(&self.message, order),
            message_bytes: strings(&self.message_bytes, order),
            whole: strings(&self.whole, order),
            fix: strings(&self.fix, order),
            more: strings(&self.more, order),
            fields: self
                .fields
                .iter()
                .map(|field| column(field, order))
                .collect(),
            line_bytes: numbers(&self.line_bytes, order),
        }
    }
}

impl StringColumn {
    /// Some of the rows, in this order, with the same strings.
    pub(crate) fn in_order(&self, order: &[u32]) -> StringColumn {
        codes(self, order)
    }
}

fn numbers<T: Copy>(values: &[T], order: &[u32]) -> Vec<T> {
    order.iter().map(|row| values[*row as usize]).collect()
}

fn column(column: &Column, order: &[u32]) -> Column {
    match column {
        Column::Strings(column) => Column::Strings(strings(column, order)),
        Column::Ints(column) => Column::Ints(valid_numbers(column, order)),
        Column::Floats(column) => Column::Floats(valid_numbers(column, order)),
        Column::Bools(column) => Column::Bools(valid_numbers(column, order)),
        Column::Absent => Column::Absent,
    }
}

fn valid_numbers<T: Copy>(column: &Numbers<T>, order: &[u32]) -> Numbers<T> {
    let valid = if column.valid.is_empty() {
        Vec::new()
    } else {
        numbers(&column.valid, order)
    };
    Numbers {
        values: numbers(&column.values, order),
        valid,
    }
}

/// A dictionary stays as it is; strings of most rows that are nearly all different move.
fn strings(column: &StringColumn, order: &[u32]) -> StringColumn {
    let rows = column.codes.len();
    let present = column.codes.iter().filter(|code| **code != NULL).count();
    let moves = column.values.len() * 4 > present * 3 && present * 2 > rows;
    if !moves {
        return codes(column, order);
    }
    let bytes = order.iter().filter_map(|row| column.get(*row as usize));
    let mut moved = Strings::with_capacity(order.len(), bytes.map(<[u8]>::len).sum());
    let codes = order.iter().map(|row| match column.get(*row as usize) {
        Some(text) => {
            moved.push(text);
            cast::low_u32(moved.len()) - 1
        }
        None => NULL,
    });
    StringColumn {
        codes: codes.collect(),
        values: Arc::new(moved),
    }
}

fn codes(column: &StringColumn, order: &[u32]) -> StringColumn {
    StringColumn {
        codes: numbers(&column.codes, order),
        values: Arc::clone(&column.values),
    }
}
