//! Which partitions are read, and from where on.

use std::sync::Arc;
use std::time::Instant;

use krafka::TopicInfo;
use krafka::error::KrafkaError;
use logpond_segment::batches::BatchSet;
use logpond_segment::sources::Interval;
use xxhash_rust::xxh3::xxh3_128;

use super::{
    EPOCH_PREFIX, End, LOOK_INTERVAL, Partition, PartitionError, PartitionReader, Session,
    WATCH_INTERVAL, entry,
};
use crate::kafka::RemoteBatches;
use crate::kafka::runs::{ResumePoint, first_missing, place};
use logpond_host::telemetry::say;
use logpond_settings::{KafkaStart, KafkaTopic};

impl Session<'_> {
    /// Sees now and then which partitions there are and who else reads them, and begins those that are
    /// new.
    pub(super) async fn look(&mut self) -> Result<(), End> {
        if self
            .looked_at
            .is_some_and(|at| at.elapsed() < LOOK_INTERVAL)
        {
            return Ok(());
        }
        self.looked_at = Some(Instant::now());
        self.try_stopped().await;
        let mut new = Vec::new();
        for topic in &self.reader.topics {
            let found = self.consumer.fetch_metadata(Some(&topic.topic)).await;
            match found.map(|found| found.topics.into_iter().next()) {
                Ok(Some(info)) => new.extend(self.new_of(topic, &info).await?),
                Ok(None) | Err(KrafkaError::UnknownTopic { .. }) => {
                    self.forget(&topic.topic).await?;
                    let none = std::iter::empty();
                    self.reader.remembered().note_look(&topic.topic, none);
                    let why = "there is no such topic, or the user may not describe it; it is looked for again";
                    self.reader.complain(&topic.topic, why);
                }
                Err(error) => self.reader.complain(&topic.topic, &error.to_string()),
            }
        }
        if !new.is_empty() {
            let epochs: Vec<u128> = new.iter().map(|partition| partition.epoch).collect();
            let known = self.ask(&epochs).await;
            self.begin(new, &known).await?;
        }
        if self.watched_at.elapsed() >= WATCH_INTERVAL {
            self.watched_at = Instant::now();
            self.watch_others().await?;
        }
        Ok(())
    }

    /// The partitions of a topic that are to be read and are not.
    async fn new_of(
        &mut self,
        topic: &KafkaTopic,
        info: &TopicInfo,
    ) -> Result<Vec<Partition>, End> {
        let name: Arc<str> = topic.topic.as_str().into();
        let known = self.ids.insert(name.clone(), info.topic_id);
        if known.is_some_and(|known| known != info.topic_id) {
            say(&format!(
                "the topic {name} of Kafka was created anew; it is read from where it begins"
            ));
            self.forget(&name).await?;
            self.ids.insert(name.clone(), info.topic_id);
        }
        let mut numbers: Vec<i32> = info.partitions.keys().copied().collect();
        let epochs = numbers
            .iter()
            .map(|number| self.epoch(&name, *number, &info.topic_id));
        self.reader.remembered().note_look(&name, epochs);
        numbers.retain(|number| topic.has(*number));
        numbers.sort_unstable();
        if numbers.is_empty() {
            let why = "it has none of the partitions that are to be read";
            self.reader.complain(&name, why);
        }
        numbers.retain(|number| !self.read.contains_key(&(name.clone(), *number)));
        let new = numbers
            .into_iter()
            .map(|number| self.partition(&name, number, &info.topic_id));
        let remembered = self.reader.remembered();
        Ok(new
            .filter(|partition| !remembered.is_given_up(partition.epoch))
            .collect())
    }

    fn partition(&self, topic: &Arc<str>, number: i32, id: &[u8; 16]) -> Partition {
        Partition {
            topic: topic.clone(),
            number,
            epoch: self.epoch(topic, number, id),
            labels: Arc::new(entry::labels_of(topic, number)),
        }
    }

    fn epoch(&self, topic: &str, number: i32, id: &[u8; 16]) -> u128 {
        let name = [
            EPOCH_PREFIX,
            self.cluster.as_bytes(),
            b" ",
            topic.as_bytes(),
            b" ",
            id,
        ];
        xxh3_128(&[&name.concat(), &number.to_le_bytes()[..]].concat())
    }

    /// What all nodes hold of these epochs, or who does not answer. This node is asked first, as files may
    /// go from it to others meanwhile; what comes to it meanwhile is for the caller to see.
    async fn ask(&self, epochs: &[u128]) -> Result<RemoteBatches, String> {
        let parts = &self.shared().parts;
        let mut own = BatchSet::default();
        for epoch in epochs {
            own.union_with(&(parts.held)(*epoch));
        }
        let Some(others) = parts.others.clone() else {
            let held = own;
            let is_one_lost = false;
            return Ok(RemoteBatches { held, is_one_lost });
        };
        let mut wanted = BatchSet::default();
        let (from, to) = (0, u64::MAX);
        epochs
            .iter()
            .for_each(|epoch| wanted.insert_run(*epoch, Interval { from, to }));
        let asked = tokio::task::spawn_blocking(move || others.held(&wanted)).await;
        let asked = asked.unwrap_or_else(|_| Err("the nodes could not be asked".to_owned()));
        let mut elsewhere = asked?;
        elsewhere.held.union_with(&own);
        Ok(elsewhere)
    }

    /// Begins partitions of which it is known how far they were read.
    async fn begin(
        &mut self,
        new: Vec<Partition>,
        known: &Result<RemoteBatches, String>,
    ) -> Result<(), End> {
        for partition in new {
            match known {
                Ok(known) => self.begin_one(partition, known).await?,
                Err(why) => {
                    let why = format!(
                        "it is not read before it is known what each node has of it: {why}; a node that \
                         does not come back is given up by `logpond cluster forget`"
                    );
                    self.reader.complain(&partition.name(), &why);
                }
            }
        }
        Ok(())
    }

    async fn begin_one(&mut self, partition: Partition, known: &RemoteBatches) -> Result<(), End> {
        let epoch = partition.epoch;
        let mut held = known.held.clone();
        held.union_with(&(self.shared().parts.held)(epoch));
        let noted = self.shared().positions().next(epoch);
        let runs: Vec<Interval> = held.of_epoch(epoch).collect();
        let next = match place(&runs, noted) {
            Some(place) if place.next < place.behind && known.is_one_lost => {
                self.first_hole(&partition, &runs, place).await
            }
            Some(place) => Some(place.behind),
            None => self.first_offset(&partition).await,
        };
        let Some(next) = next else {
            return Ok(());
        };
        let mut rest = BatchSet::default();
        let (from, to) = (next, u64::MAX);
        rest.insert_run(epoch, Interval { from, to });
        let reading = PartitionReader {
            partition,
            from,
            next,
            held: held.intersection(&rest),
            trouble: PartitionError::default(),
        };
        self.read_on(reading).await
    }

    /// The first offset that nobody holds and that Kafka may still have. If no node was lost it is not asked
    /// for: then it has expired, was dropped by rules, or never was in Kafka, and is not worth a fetch.
    async fn first_hole(
        &self,
        partition: &Partition,
        held: &[Interval],
        place: ResumePoint,
    ) -> Option<u64> {
        let (low, _) = self.ends_if_told(partition).await?;
        let next = first_missing(held, place.next.max(low.min(place.behind)));
        if next < place.behind {
            say(&format!(
                "of {} of Kafka no node has all from {next} on: what is missing is read again",
                partition.name()
            ));
        }
        Some(next)
    }

    /// The first offset that Kafka has of a partition, and the one behind its last.
    pub(super) async fn ends_of(&self, partition: &Partition) -> krafka::Result<(u64, u64)> {
        let (topic, number) = (&partition.topic, partition.number);
        let (low, high) = self.consumer.fetch_watermarks(topic, number).await?;
        Ok((low.max(0).unsigned_abs(), high.max(0).unsigned_abs()))
    }

    /// The same; that it cannot be known now is said.
    async fn ends_if_told(&self, partition: &Partition) -> Option<(u64, u64)> {
        let ends = self.ends_of(partition).await;
        ends.inspect_err(|error| self.reader.complain(&partition.name(), &error.to_string()))
            .ok()
    }

    /// Adds a partition to those that are read.
    async fn read_on(&mut self, reading: PartitionReader) -> Result<(), End> {
        let (partition, next) = (reading.partition.clone(), reading.next);
        self.count(&partition, |counted| {
            counted.next = next;
            counted.is_read = true;
        });
        let Partition { topic, number, .. } = &partition;
        self.read.insert((topic.clone(), *number), reading);
        self.assign(topic).await?;
        self.seek(topic, *number, next).await
    }

    /// Has the client read the partitions of a topic that are to be read, and no others.
    pub(super) async fn assign(&self, topic: &str) -> Result<(), End> {
        let of_topic = self.read.keys().filter(|(name, _)| **name == *topic);
        let numbers = of_topic.map(|(_, number)| *number).collect();
        Ok(self.consumer.assign(topic, numbers).await?)
    }

    pub(super) async fn seek(&self, topic: &str, number: i32, next: u64) -> Result<(), End> {
        let next = i64::try_from(next).unwrap_or(i64::MAX);
        Ok(self.consumer.seek(topic, number, next).await?)
    }

    /// Reads a topic no more.
    pub(super) async fn forget(&mut self, topic: &str) -> Result<(), End> {
        self.ids.remove(topic);
        for ((name, number), _) in self.read.iter().filter(|((name, _), _)| **name == *topic) {
            let counters = &self.shared().counters;
            counters.of(name, *number, |counted| counted.is_read = false);
        }
        let read = self.read.len();
        self.read.retain(|(name, _), _| **name != *topic);
        if read == self.read.len() {
            Ok(())
        } else {
            // A topic that is gone cannot be looked up; nothing of it is read any more.
            drop_error(self.assign(topic).await)
        }
    }

    /// Where a partition is begun that was never read. That is noted: a restart before its first message
    /// begins at the same.
    async fn first_offset(&self, partition: &Partition) -> Option<u64> {
        let (low, high) = self.ends_if_told(partition).await?;
        let is_later = self.reader.remembered().is_later(partition.epoch);
        let first = match self.shared().start {
            KafkaStart::Latest if !is_later => high,
            KafkaStart::Earliest | KafkaStart::Latest => low,
        };
        self.shared()
            .positions()
            .note(partition.epoch, first, || partition.name());
        self.shared().save();
        Some(first)
    }

    /// Gives up what a node that goes before this one reads, too.
    async fn watch_others(&mut self) -> Result<(), End> {
        let Some(others) = self.shared().parts.others.clone() else {
            return Ok(());
        };
        let mut wanted = BatchSet::default();
        for reading in self.read.values() {
            let (from, to) = (reading.from, u64::MAX);
            wanted.insert_run(reading.partition.epoch, Interval { from, to });
        }
        let taken = tokio::task::spawn_blocking(move || others.taken(&wanted)).await;
        let taken = taken.unwrap_or_default();
        let doubled = self
            .read
            .values()
            .filter(|reading| is_read_too(&taken, reading.partition.epoch, &reading.held));
        let doubled: Vec<Partition> = doubled.map(|reading| reading.partition.clone()).collect();
        for partition in doubled {
            let why = "another node reads this partition, too: it is left to that node, and messages may be \
                       there twice; name each partition on one node only";
            self.reader.complain(&partition.name(), why);
            self.count(&partition, |counted| counted.is_read = false);
            self.reader.remembered().give_up(partition.epoch);
            self.read
                .remove(&(partition.topic.clone(), partition.number));
            self.assign(&partition.topic).await?;
        }
        Ok(())
    }
}

/// Whether others have taken in something of a partition since this node began to read it, when this was
/// held of it. That they are ahead is not asked: two that get each message at once are level for ever.
fn is_read_too(taken: &BatchSet, epoch: u128, held: &BatchSet) -> bool {
    taken.without(held).of_epoch(epoch).next().is_some()
}

fn drop_error(result: Result<(), End>) -> Result<(), End> {
    match result {
        Err(End::Stop) => Err(End::Stop),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(runs: &[(u128, u64, u64)]) -> BatchSet {
        let mut set = BatchSet::default();
        for &(epoch, from, to) in runs {
            set.insert_run(epoch, Interval { from, to });
        }
        set
    }

    #[test]
    fn what_others_took_in_since_the_beginning_is_read_twice() {
        // What was taken in from where reading began, what was held of that then, and whether it is read twice.
        let cases: [(&[_], &[_], bool); 5] = [
            (&[], &[], false),
            (&[(1, 10, 10)], &[], true),
            (&[(2, 10, 10)], &[], false),
            // A hole before it is being read; what is behind that was known.
            (&[(1, 20, 29)], &[(1, 20, 29)], false),
            (&[(1, 20, 30)], &[(1, 20, 29)], true),
        ];
        for (taken, held, expected) in cases {
            let is_doubled = is_read_too(&set(taken), 1, &set(held));
            assert_eq!(is_doubled, expected, "{taken:?} {held:?}");
        }
    }
}
