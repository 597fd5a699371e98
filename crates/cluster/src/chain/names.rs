//! How the objects of a bucket are called.

use logpond_record::Id;

use crate::Day;

/// What the names of all links begin with.
pub const LINKS: &str = "m/";

/// What the names of all segments begin with.
pub const SEGMENTS: &str = "segments/";

/// The name of a link of a day's chain, by its number.
pub fn link_name(day: Day, number: u64) -> String {
    format!("{LINKS}{day}/{number:020}.json")
}

/// Reads what [`link_name`] wrote; `None` for all other names.
pub fn parse_link_name(name: &str) -> Option<(Day, u64)> {
    let (day, file) = name.strip_prefix(LINKS)?.split_once('/')?;
    let (day, number) = (day.parse().ok()?, file.strip_suffix(".json")?.parse().ok()?);
    (link_name(day, number) == name).then_some((day, number))
}

/// The name of a segment of a day.
pub fn segment_name(day: Day, id: Id) -> String {
    format!("{SEGMENTS}{day}/{id}.parquet")
}

/// Reads what [`segment_name`] wrote; `None` for all other names.
pub fn parse_segment_name(name: &str) -> Option<(Day, Id)> {
    let (day, file) = name.strip_prefix(SEGMENTS)?.split_once('/')?;
    let (day, id) = (
        day.parse().ok()?,
        file.strip_suffix(".parquet")?.parse().ok()?,
    );
    (segment_name(day, id) == name).then_some((day, id))
}
