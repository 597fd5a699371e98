//! Times of access logs beyond those of nginx and Apache, each by the definition of its product.

use std::sync::LazyLock;

use logpond_record::{
    Assumption, TimePattern, TimeSource, Timestamp, cast, write_unwritten_offset,
};

use crate::intake::access_format::Times;
use crate::intake::sketch::Sketch;

/// The form of a product's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// `2026-03-02 00:00:06`, UTC by definition (W3C Extended Log File Format).
    W3c,
    /// The same with a tab between date and time (CloudFront).
    W3cTab,
    /// The same in the machine's time (IIS Advanced Logging).
    W3cLocal,
    /// With a fraction.
    W3cFraction,
    W3cLocalFraction,
    /// `02/Mar/2026:00:00:06.123`, the machine's time (HAProxy's `%tr`).
    Haproxy,
    /// `02/Mar/2026 00:00:06`, the machine's time (Django, Werkzeug).
    Python,
    /// `02/Mar/2026:00:00:06`, the machine's time (CherryPy).
    Zoneless,
    /// `03/02/2026:00:00:06 -0000`, month first (cPanel).
    Cpanel,
    /// `Mon Mar  2 00:00:06 2026`, the machine's time (uWSGI).
    Asctime,
    /// `2026/03/02 - 00:00:06`, the machine's time (Gin).
    Gin,
    /// `2026-03-02T00:00:06.123Z`
    Iso,
    /// `2026-03-02T00:00:06+00:00`
    IsoSeconds,
    /// `2026-03-02T00:00:06`, UTC by definition (Elastic Load Balancing for TCP).
    IsoUtc,
    /// Seconds since 1970 with milliseconds (Squid).
    Epoch,
    /// Seconds since 1970.
    Seconds,
    /// `02/Mar/2026:00:00:06.123 +0000` (Apache with `msec_frac`, JBoss, 389 Directory Server).
    Fraction,
}

/// A clock's pattern, and what it leaves open.
const TABLE: [(&str, Assumption); 17] = [
    ("%Y-%m-%d %H:%M:%S", Assumption::Nothing),
    ("%Y-%m-%d\t%H:%M:%S", Assumption::Nothing),
    ("%Y-%m-%d %H:%M:%S", Assumption::Zone),
    ("%Y-%m-%d %H:%M:%S.%f", Assumption::Nothing),
    ("%Y-%m-%d %H:%M:%S.%f", Assumption::Zone),
    ("%d/%b/%Y:%H:%M:%S.%f", Assumption::Zone),
    ("%d/%b/%Y %H:%M:%S", Assumption::Zone),
    ("%d/%b/%Y:%H:%M:%S", Assumption::Zone),
    ("%m/%d/%Y:%H:%M:%S %z", Assumption::Nothing),
    ("%a %b %e %H:%M:%S %Y", Assumption::Zone),
    ("%Y/%m/%d - %H:%M:%S", Assumption::Zone),
    ("%Y-%m-%dT%H:%M:%S.%f%z", Assumption::Nothing),
    ("%Y-%m-%dT%H:%M:%S%z", Assumption::Nothing),
    ("%Y-%m-%dT%H:%M:%S", Assumption::Nothing),
    ("%s.%f", Assumption::Nothing),
    ("%s", Assumption::Nothing),
    ("%d/%b/%Y:%H:%M:%S.%f %z", Assumption::Nothing),
];

static PATTERNS: LazyLock<Vec<Option<TimePattern>>> = LazyLock::new(|| {
    let patterns = TABLE.iter().map(|(text, _)| TimePattern::new(text).ok());
    patterns.collect()
});

/// Clocks that stand in brackets before a request, tried where nginx's and Apache's usual one does not fit.
pub(super) const BRACKETED: [Clock; 7] = [
    Clock::Iso,
    Clock::IsoSeconds,
    Clock::Fraction,
    Clock::Haproxy,
    Clock::Zoneless,
    Clock::Python,
    Clock::Cpanel,
];

/// A time as it stands in a line.
pub(crate) struct ClockTime {
    pub(crate) time: Timestamp,
    pub(crate) assumed: Assumption,
    /// Bytes of the text that belong to it.
    pub(crate) bytes: usize,
    /// The concrete pattern, which a slot has.
    pattern: Vec<u8>,
    is_exact: bool,
}

impl Clock {
    /// The same clock with a fraction of the second.
    pub(crate) fn with_fraction(self) -> Clock {
        match self {
            Clock::W3c => Clock::W3cFraction,
            Clock::W3cLocal => Clock::W3cLocalFraction,
            other => other,
        }
    }

    /// The time that `text` begins with.
    pub(crate) fn read(self, text: &[u8], times: Times<'_>) -> Option<ClockTime> {
        let pattern = PATTERNS.get(self as usize)?.as_ref()?;
        let assumed = TABLE[self as usize].1;
        let found = pattern.parse(text, times.received)?;
        let mut concrete = Vec::with_capacity(40);
        pattern.write_concrete(&found, &mut concrete);
        let place = times.reader.place();
        let placed = place.and_then(|place| place.instant(found.time, assumed, times.received));
        let time = match placed {
            Some((time, minutes)) if minutes != 0 => {
                write_unwritten_offset(cast::low_i32(minutes), &mut concrete);
                time
            }
            _ => found.time,
        };
        Some(ClockTime {
            time,
            assumed,
            bytes: found.bytes,
            pattern: concrete,
            is_exact: found.is_exact(),
        })
    }
}

impl ClockTime {
    /// Draws it as the record's time.
    pub(crate) fn draw<'a>(&self, text: &'a str, sketch: &mut Sketch<'_, 'a>) {
        let source = TimeSource::Line(self.assumed);
        sketch.time_in(&self.pattern, self.time, source);
        if !self.is_exact {
            sketch.fix(text.as_bytes());
        }
    }
}
