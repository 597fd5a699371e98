//! A table that is complete, as its query looks at it.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::sync::Arc;

use logpond_record::cast;

use super::cells::Cell;
use super::leaf::Leaf;
use super::series::SeriesLabels;
use super::series_map::SeriesHandle;
use super::table::RangeTable;

/// In which order series come out of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// That of their labels, so that sums of numbers are the same each time.
    ByLabels,
    /// Any: what looks at them puts them in order, or only counts them.
    Any,
}

/// Series with their cells in order of time.
pub(super) struct Rows {
    series: SeriesHandle,
    /// Places of the series.
    order: Vec<u32>,
    /// Labels in this order, once they are asked for: there may be many, of which a few are wanted.
    labels: OnceCell<Vec<Arc<SeriesLabels>>>,
}

impl Rows {
    /// What a table has.
    pub(super) fn of(table: RangeTable, order: Order) -> Rows {
        let (series, _) = table.into_parts();
        let mut places: Vec<u32> = (0..cast::low_u32(series.len())).collect();
        if order == Order::ByLabels {
            let by_labels =
                |a: &u32, b: &u32| SeriesLabels::compare_keys(series.key(*a), series.key(*b));
            places.sort_unstable_by(by_labels);
        }
        Rows {
            series,
            order: places,
            labels: OnceCell::new(),
        }
    }

    /// The series with a number in a window, each with its labels.
    pub(super) fn each<'r>(
        &'r self,
        leaf: &'r Leaf,
        step: u64,
    ) -> impl Iterator<Item = (&'r Arc<SeriesLabels>, f64)> + 'r {
        let labels = self.labels.get_or_init(|| {
            let labels = self.order.iter().map(|place| Arc::new(self.labels(*place)));
            labels.collect()
        });
        let window = leaf.window(step);
        let of_window = move |(at, place): (usize, &u32)| {
            let value = window.value(leaf, self.series.cells(*place))?;
            Some((&labels[at], value))
        };
        self.order.iter().enumerate().filter_map(of_window)
    }

    /// The places of series with a number in a window.
    pub(super) fn values<'r>(
        &'r self,
        leaf: &'r Leaf,
        step: u64,
    ) -> impl Iterator<Item = (u32, f64)> + 'r {
        let window = leaf.window(step);
        self.order.iter().filter_map(move |place| {
            let value = window.value(leaf, self.series.cells(*place))?;
            Some((*place, value))
        })
    }

    /// The labels of the series at a place.
    pub(super) fn labels(&self, place: u32) -> SeriesLabels {
        // Keys are written here or checked when they come.
        let key = self.series.key(place);
        debug_assert!(SeriesLabels::is_key(key));
        SeriesLabels::of_key(key.into()).unwrap_or_default()
    }

    /// The order of the labels of two series.
    pub(super) fn compare_labels(&self, a: u32, b: u32) -> Ordering {
        SeriesLabels::compare_keys(self.series.key(a), self.series.key(b))
    }
}

/// A window of a table.
#[derive(Clone, Copy)]
struct Window {
    /// Its pieces: from one up to before another.
    pieces: (u32, u32),
    /// Behind which time, and up to which.
    bounds: (i64, i64),
}

impl Leaf {
    fn window(&self, step: u64) -> Window {
        Window {
            pieces: self.windows.pieces(step),
            bounds: self.windows.bounds(step),
        }
    }
}

impl Window {
    /// The number of a window of some cells.
    fn value(&self, leaf: &Leaf, cells: &[(u32, Cell)]) -> Option<f64> {
        let (from, to) = self.pieces;
        let first = cells.partition_point(|(piece, _)| *piece < from);
        let in_window = cells[first..].iter().take_while(|(piece, _)| *piece < to);
        let parameter = leaf.spec().aggregation.parameter;
        leaf.cells
            .value(in_window.map(|(_, cell)| cell), self.bounds, parameter)
    }
}
