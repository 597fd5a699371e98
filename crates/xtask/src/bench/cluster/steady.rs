//! Whether stores keep up with ingesters once the queue between them has filled: consumed for each
//! offered, by the trend of what waits.
//!
//! Over a whole run the ratio is below 1 though nothing falls behind, since what waits in a queue of
//! steady length was offered and is not consumed yet. So it is looked at the second half, when the first
//! files have long been consumed. What waits there goes up and down by whole journal files: between
//! any two moments it differs by one of each ingester, which is percents of what is offered in half a
//! minute. A line through all of what was seen is off by less, and says by how much: the ratio is 1 less
//! its slope over the rate that is offered, and the resolution twice the standard error of that.
//!
//! Files close when they are full, or at a certain age. In order that those of that age are met equally
//! often wherever the second half begins, it is cut to whole times that age.

/// The age at which journal files close, seconds.
const PERIOD_S: f64 = 30.0;

/// The coarsest resolution at which the ratio is judged: at low rates a file is a large part of all
/// that is offered, and everything would be 1 within that.
const RESOLUTION_MAX: f64 = 0.05;

/// What a trend takes at least.
const SAMPLES_MIN: usize = 8;

/// What ingesters and stores had done at some moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Since the load began.
    pub(super) at_s: f64,
    /// Bytes of journal files that ingesters have closed so far.
    pub(super) offered: f64,
    /// Those of which there are enough copies.
    pub(super) consumed: f64,
}

/// The progress of consuming in the steady part of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct SteadyState {
    /// Consumed for each offered.
    pub(super) ratio: f64,
    /// How far off that may be.
    pub(super) resolution: f64,
}

impl SteadyState {
    /// The ratio that would be judged if anything can be.
    pub(super) fn at_most(self) -> Option<f64> {
        (self.resolution <= RESOLUTION_MAX).then_some(self.ratio + self.resolution)
    }

    /// By what was seen during a load of this length; `None` if that is too little.
    pub(super) fn of(samples: &[Sample], load_s: f64) -> Option<SteadyState> {
        let half = load_s / 2.0;
        let length = match (half / PERIOD_S).floor() {
            0.0 => half,
            periods => periods * PERIOD_S,
        };
        let steady = |sample: &&Sample| (load_s - length..=load_s).contains(&sample.at_s);
        let steady: Vec<Sample> = samples.iter().filter(steady).copied().collect();
        let (first, last) = (steady.first()?, steady.last()?);
        let rate = (last.offered - first.offered) / (last.at_s - first.at_s);
        if steady.len() < SAMPLES_MIN || rate <= 0.0 {
            return None;
        }
        let count = steady.len() as f64;
        let mean = |of: fn(&Sample) -> f64| steady.iter().map(of).sum::<f64>() / count;
        let waiting = |sample: &Sample| sample.offered - sample.consumed;
        let (at, waits) = (mean(|sample| sample.at_s), mean(waiting));
        let spread: f64 = steady.iter().map(|s| (s.at_s - at).powi(2)).sum();
        let common = |s: &Sample| (s.at_s - at) * (waiting(s) - waits);
        let slope = steady.iter().map(common).sum::<f64>() / spread;
        let off = |s: &Sample| (waiting(s) - waits - slope * (s.at_s - at)).powi(2);
        let variance = steady.iter().map(off).sum::<f64>() / (count - 2.0);
        Some(SteadyState {
            ratio: 1.0 - slope / rate,
            resolution: 2.0 * (variance / spread).sqrt() / rate,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: f64 = 16e6;

    /// Three ingesters that close a file a second each, of which stores consume a part, whole files
    /// at a time, some seconds later.
    fn samples(load_s: u32, share: f64) -> Vec<Sample> {
        let each = (0..load_s / 2).map(|number| {
            let at_s = f64::from(number) * 2.0 + 0.3;
            let files = |s: f64, phase: f64| (s + phase).max(0.0).floor() * FILE;
            let of_all = |s: f64| files(s, 0.0) + files(s, 0.4) + files(s, 0.9);
            // Stores are sometimes later.
            let late = 3.0 + f64::from(number % 3) * 0.4;
            let consumed = of_all((at_s - late) * share);
            Sample {
                at_s,
                offered: of_all(at_s),
                consumed,
            }
        });
        each.collect()
    }

    #[test]
    fn a_queue_of_steady_length_is_no_falling_behind() {
        let samples = samples(60, 1.0);
        let steady = SteadyState::of(&samples, 60.0).unwrap();
        assert!(
            (steady.ratio - 1.0).abs() <= steady.resolution,
            "{steady:?}"
        );
        assert!(steady.resolution < 0.03, "{steady:?}");
        // The ratio over all of it is what says otherwise.
        let last = samples.last().unwrap();
        assert!(last.consumed / last.offered < 0.96);
        assert!(steady.at_most().unwrap() >= 1.0);
    }

    #[test]
    fn falling_behind_shows() {
        for (load_s, share) in [(60, 0.93), (120, 0.97)] {
            let steady = SteadyState::of(&samples(load_s, share), f64::from(load_s)).unwrap();
            assert!(steady.ratio + steady.resolution < 1.0, "{steady:?}");
            assert!((steady.ratio - share).abs() < 0.02, "{steady:?}");
        }
    }

    #[test]
    fn too_coarse_is_not_judged() {
        let resolution = |resolution| SteadyState {
            ratio: 0.9,
            resolution,
        };
        assert_eq!(resolution(0.2).at_most(), None);
        assert!(resolution(0.04).at_most().unwrap() < 1.0);
    }

    #[test]
    fn too_little_says_nothing() {
        assert!(SteadyState::of(&[], 60.0).is_none());
        assert!(SteadyState::of(&samples(20, 1.0), 20.0).is_none());
        let idle = samples(60, 1.0).into_iter().map(|sample| Sample {
            offered: 5.0,
            consumed: 5.0,
            ..sample
        });
        assert!(SteadyState::of(&idle.collect::<Vec<_>>(), 60.0).is_none());
    }
}
