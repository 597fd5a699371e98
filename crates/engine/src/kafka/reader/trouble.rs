//! Partitions of which nothing comes, though brokers can be reached: the client is silent about most of that.

use std::collections::HashMap;
use std::time::Instant;

use futures_util::future::join_all;
use krafka::consumer::{PartitionLag, TopicPartition};

use super::{LISTEN_TIME_MAX, Partition, SILENT_TIME, STOPPED_TIME, Session};

/// The reason why nothing comes of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PartitionError {
    /// It does, as far as is known.
    #[default]
    None,
    /// There is more up to this offset, and nothing was heard of it. It may be under way: only if it is the
    /// same the next time, nothing comes.
    Behind { next: u64, end: u64 },
    /// Nothing comes of it, and there is more up to this offset, if that is known.
    Silent { next: u64, end: Option<u64> },
    /// What comes next cannot be decoded; it is left alone since then.
    Stopped(Instant),
}

impl PartitionError {
    /// Whether it is read, as far as is known.
    pub(super) fn is_none(self) -> bool {
        matches!(self, PartitionError::None | PartitionError::Behind { .. })
    }

    pub(super) fn is_stopped(self) -> bool {
        matches!(self, PartitionError::Stopped(_))
    }

    /// The end of the partition, if its leader was asked.
    pub(super) fn end(self) -> Option<u64> {
        match self {
            PartitionError::Behind { end, .. } => Some(end),
            PartitionError::Silent { end, .. } => end,
            PartitionError::None | PartitionError::Stopped(_) => None,
        }
    }

    /// What is known once the leader was asked where the partition ends, while `next` is to be read next.
    fn after(self, answer: &Result<u64, String>, next: u64) -> PartitionError {
        match (answer, self) {
            (Err(_), _) => PartitionError::Silent { next, end: None },
            (Ok(end), _) if *end <= next => PartitionError::None,
            (
                Ok(end),
                PartitionError::Behind { next: before, .. }
                | PartitionError::Silent { next: before, .. },
            ) if before == next => {
                let end = Some(*end);
                PartitionError::Silent { next, end }
            }
            (Ok(end), _) => PartitionError::Behind { next, end: *end },
        }
    }
}

/// The partition whose messages cannot be decoded and why, if an error of the client is about one: it says so
/// only in its text.
fn undecodable(text: &str) -> Option<(&str, i32, &str)> {
    let (_, rest) = text.split_once("undecodable record batch at ")?;
    let (partition, rest) = rest.split_once(" offset ")?;
    let (topic, number) = partition.rsplit_once('-')?;
    let why = rest.split_once("Underlying error: ");
    Some((
        topic,
        number.parse().ok()?,
        why.map_or(rest, |(_, why)| why),
    ))
}

impl Session<'_> {
    /// Leaves a partition alone if an error is about its messages; gives whether it is.
    pub(super) async fn stop_undecodable(&mut self, error: &str) -> bool {
        let Some((topic, number, why)) = undecodable(error) else {
            return false;
        };
        let Some(reading) = self.read.get_mut(&(topic.into(), number)) else {
            return false;
        };
        reading.trouble = PartitionError::Stopped(Instant::now());
        let why = format!(
            "the messages from offset {} on cannot be read, and the partition stands still: {why}",
            reading.next
        );
        self.reader.complain(&format!("{topic}/{number}"), &why);
        self.consumer.pause(topic, &[number]).await;
        true
    }

    /// Tries again what was left alone: Kafka may have removed what could not be decoded.
    pub(super) async fn try_stopped(&mut self) {
        for ((topic, number), reading) in &mut self.read {
            match reading.trouble {
                PartitionError::Stopped(since) if since.elapsed() > STOPPED_TIME => {
                    reading.trouble = PartitionError::Stopped(Instant::now());
                    self.consumer.resume(topic, &[*number]).await;
                }
                _ => {}
            }
        }
    }

    /// Asks the leaders of partitions of which nothing was heard for a while where these end, now and then,
    /// and says of which nothing comes.
    pub(super) async fn listen_now_and_then(
        &mut self,
        lags: &HashMap<TopicPartition, PartitionLag>,
    ) {
        if self.listened_at.elapsed() < SILENT_TIME {
            return;
        }
        self.listened_at = Instant::now();
        let is_stale = |partition: &Partition| {
            let lag = lags.get(&partition.of_client());
            lag.is_some_and(|lag| lag.stale)
        };
        let stale = self
            .read
            .values()
            .filter(|reading| !reading.trouble.is_stopped() && is_stale(&reading.partition))
            .map(|reading| reading.partition.clone());
        // Each by itself, so that those of a silent leader are told from the others.
        let asking = stale.map(|partition| async {
            let end = tokio::time::timeout(LISTEN_TIME_MAX, self.end_of(&partition)).await;
            let silent = Err("its leader does not answer".to_owned());
            (partition, end.unwrap_or(silent))
        });
        let answers = join_all(asking).await;
        for (partition, answer) in &answers {
            self.note_answer(partition, answer);
        }
    }

    /// Where a partition ends, as far as it may be read.
    async fn end_of(&self, partition: &Partition) -> Result<u64, String> {
        let of = [(&*partition.topic, partition.number)];
        // By -1 Kafka means the end.
        let ends = self.consumer.offsets_for_times(&of, -1).await;
        match ends.into_values().next() {
            Some(Ok(end)) => Ok(end.max(0).unsigned_abs()),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("it has no leader".to_owned()),
        }
    }

    fn note_answer(&mut self, of: &Partition, answer: &Result<u64, String>) {
        let Some(reading) = self.read.get_mut(&(of.topic.clone(), of.number)) else {
            return;
        };
        reading.trouble = reading.trouble.after(answer, reading.next);
        let why = match (reading.trouble, answer) {
            (PartitionError::Silent { .. }, Err(why)) => format!("nothing is heard of it: {why}"),
            (PartitionError::Silent { next, .. }, Ok(end)) => format!(
                "there are messages from {next} on up to {end}, and none come: the user may not read the \
                 topic, or its leader cannot"
            ),
            _ => return,
        };
        self.reader.complain(&of.name(), &why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_not_come_is_trouble() {
        let silent = PartitionError::Silent {
            next: 5,
            end: Some(9),
        };
        let cases = [
            // An idle partition, and one that has caught up.
            (PartitionError::None, Ok(5), PartitionError::None),
            (silent, Ok(5), PartitionError::None),
            // What may be under way, and has not come by the next time.
            (
                PartitionError::None,
                Ok(9),
                PartitionError::Behind { next: 5, end: 9 },
            ),
            (PartitionError::Behind { next: 5, end: 7 }, Ok(9), silent),
            (silent, Ok(9), silent),
            // Something came meanwhile.
            (
                PartitionError::Behind { next: 4, end: 7 },
                Ok(9),
                PartitionError::Behind { next: 5, end: 9 },
            ),
            (
                PartitionError::None,
                Err("away".to_owned()),
                PartitionError::Silent { next: 5, end: None },
            ),
        ];
        for (before, answer, expected) in cases {
            assert_eq!(before.after(&answer, 5), expected, "{before:?} {answer:?}");
        }
        let shown =
            [PartitionError::Behind { next: 5, end: 9 }, silent].map(PartitionError::is_none);
        assert_eq!(shown, [true, false]);
    }

    #[test]
    fn errors_about_messages_name_their_partition() {
        let text = "protocol error: undecodable record batch at my-logs-12 offset 345; the partition cannot \
                    advance. Underlying error: bad crc";
        assert_eq!(undecodable(text), Some(("my-logs", 12, "bad crc")));
        for other in [
            "broker 1 not found",
            "undecodable record batch at x offset 1",
        ] {
            assert_eq!(undecodable(other), None);
        }
    }
}
