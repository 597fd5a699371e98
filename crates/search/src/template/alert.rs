//! What templates of alerts see, as those of Prometheus do: `{{ $labels.app }}`, `{{ $value }}`.

use super::Data;
use crate::metric::SeriesLabels;

/// An alert, as its templates see it.
#[derive(Clone, Copy, Debug)]
pub struct AlertData<'a> {
    /// The labels of the series that made it.
    pub labels: &'a SeriesLabels,
    /// The number of the series.
    pub value: f64,
    /// Where people reach the server.
    pub external_url: &'a str,
    /// The time of the evaluation, in nanoseconds since the epoch.
    pub now_ns: i64,
}

impl Data for AlertData<'_> {
    fn field(&self, name: &str) -> Option<&str> {
        self.labels.get(name)
    }

    fn fields(&self) -> Vec<(String, String)> {
        let labels = self.labels.iter();
        labels.map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
    }

    fn line(&self) -> &[u8] {
        b""
    }

    fn time_ns(&self) -> i64 {
        self.now_ns
    }

    fn now_ns(&self) -> i64 {
        self.now_ns
    }
}
