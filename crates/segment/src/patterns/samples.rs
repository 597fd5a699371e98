//! The newest messages of a pattern.

use logpond_record::Timestamp;

/// Samples of a pattern.
const SAMPLES_MAX: usize = 3;

/// The most bytes of a sample; the rest is left out.
pub const SAMPLE_BYTES_MAX: usize = 512;

/// A message of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sample {
    /// When it was.
    pub time: Timestamp,
    /// Its text, at most 512 bytes of it.
    pub text: Box<[u8]>,
}

/// The newest messages of a pattern that are not the same, whatever the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// The newest first.
    list: Vec<Sample>,
}

impl Samples {
    /// Bytes of their texts.
    pub fn bytes(&self) -> usize {
        self.list.iter().map(|sample| sample.text.len()).sum()
    }

    /// The samples, newest first.
    pub fn list(&self) -> &[Sample] {
        &self.list
    }

    /// The samples, newest first.
    pub fn into_list(self) -> Vec<Sample> {
        self.list
    }

    /// True if a message of this time may be among the newest.
    pub fn may_have(&self, time: Timestamp) -> bool {
        let oldest = self.list.last();
        let oldest = oldest.filter(|_| self.list.len() == SAMPLES_MAX);
        oldest.is_none_or(|oldest| time >= oldest.time)
    }

    /// Keeps a message if it is one of the newest. Of equal texts the newest counts.
    pub fn add(&mut self, time: Timestamp, message: &[u8]) {
        if !self.may_have(time) {
            return;
        }
        let text = &message[..message.len().min(SAMPLE_BYTES_MAX)];
        match self.list.iter_mut().find(|sample| *sample.text == *text) {
            Some(known) => known.time = known.time.max(time),
            None => self.list.push(Sample {
                time,
                text: text.into(),
            }),
        }
        self.list.sort_unstable_by(|a, b| b.cmp(a));
        self.list.truncate(SAMPLES_MAX);
    }

    /// Keeps those of others that are among the newest.
    pub fn merge(&mut self, others: &Samples) {
        for sample in &others.list {
            self.add(sample.time, &sample.text);
        }
    }
}
