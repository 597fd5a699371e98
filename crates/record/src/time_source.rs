//! Whence a record's time comes, and what of it is a guess.

/// What a written time leaves open, and a reader has to assume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Assumption {
    /// It is a whole instant.
    #[default]
    Nothing = 0,
    /// It has no offset from UTC.
    Zone = 1,
    /// It has no year.
    Year = 2,
    /// It has neither.
    YearAndZone = 3,
    /// Its numbers may be the day, the month and the year in several orders.
    Day = 4,
    /// The same, and it has no offset from UTC.
    DayAndZone = 5,
}

impl Assumption {
    /// The guess about a time that says its day, its year and its offset, or not. A time whose day is
    /// assumed has a year.
    pub fn of(has_day: bool, has_year: bool, has_zone: bool) -> Assumption {
        match (has_day, has_year, has_zone) {
            (true, true, true) => Assumption::Nothing,
            (true, true, false) => Assumption::Zone,
            (true, false, true) => Assumption::Year,
            (true, false, false) => Assumption::YearAndZone,
            (false, _, true) => Assumption::Day,
            (false, _, false) => Assumption::DayAndZone,
        }
    }
}

/// Where a record's time was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeSource {
    /// The receive time: the record has none of its own.
    Received,
    /// A time field of a structured record or JSON line.
    Field(Assumption),
    /// A protocol header, such as syslog's.
    Header(Assumption),
    /// A timestamp recognised in a plain line.
    Line(Assumption),
}

/// All sources with their names, in the order of their codes.
const SOURCES: [(TimeSource, &str); TimeSource::COUNT] = [
    (TimeSource::Received, "received"),
    (TimeSource::Field(Assumption::Nothing), "field"),
    (TimeSource::Header(Assumption::Nothing), "header"),
    (TimeSource::Line(Assumption::Nothing), "line"),
    (TimeSource::Field(Assumption::Zone), "field-zone-assumed"),
    (TimeSource::Header(Assumption::Zone), "header-zone-assumed"),
    (TimeSource::Line(Assumption::Zone), "line-zone-assumed"),
    (TimeSource::Field(Assumption::Year), "field-year-assumed"),
    (TimeSource::Header(Assumption::Year), "header-year-assumed"),
    (TimeSource::Line(Assumption::Year), "line-year-assumed"),
    (
        TimeSource::Field(Assumption::YearAndZone),
        "field-year-and-zone-assumed",
    ),
    (
        TimeSource::Header(Assumption::YearAndZone),
        "header-year-and-zone-assumed",
    ),
    (
        TimeSource::Line(Assumption::YearAndZone),
        "line-year-and-zone-assumed",
    ),
    (TimeSource::Field(Assumption::Day), "field-day-assumed"),
    (TimeSource::Header(Assumption::Day), "header-day-assumed"),
    (TimeSource::Line(Assumption::Day), "line-day-assumed"),
    (
        TimeSource::Field(Assumption::DayAndZone),
        "field-day-and-zone-assumed",
    ),
    (
        TimeSource::Header(Assumption::DayAndZone),
        "header-day-and-zone-assumed",
    ),
    (
        TimeSource::Line(Assumption::DayAndZone),
        "line-day-and-zone-assumed",
    ),
];

impl TimeSource {
    /// How many there are; codes are below.
    pub const COUNT: usize = 19;

    /// The name that answers and files carry.
    pub fn as_str(self) -> &'static str {
        SOURCES[usize::from(self.code())].1
    }

    /// The number that files carry.
    pub fn code(self) -> u8 {
        let (origin, assumed) = match self {
            TimeSource::Received => return 0,
            TimeSource::Field(assumed) => (1, assumed),
            TimeSource::Header(assumed) => (2, assumed),
            TimeSource::Line(assumed) => (3, assumed),
        };
        origin + 3 * assumed as u8
    }

    /// The source with this code.
    pub fn from_code(code: u8) -> Option<TimeSource> {
        SOURCES.get(usize::from(code)).map(|(source, _)| *source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_places_in_the_list() {
        for (code, (source, name)) in SOURCES.iter().enumerate() {
            assert_eq!(usize::from(source.code()), code);
            assert_eq!(TimeSource::from_code(code as u8), Some(*source));
            assert_eq!(source.as_str(), *name);
        }
        assert_eq!(TimeSource::from_code(SOURCES.len() as u8), None);
    }
}
