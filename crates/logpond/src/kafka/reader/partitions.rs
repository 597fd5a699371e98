//! Which partitions are read, and from where on.

use std::sync::Arc;
use std::time::Instant;

use krafka::TopicInfo;
use krafka::error::KrafkaError;
use logpond_segment::batches::BatchSet;
use logpond_segment::sources::Interval;
use xxhash_rust::xxh3::xxh3_128;

use super::{
    EPOCH_PREFIX, End, Key, LOOK_INTERVAL, Partition, Reading, Session, WATCH_INTERVAL, behind,
    entry,
};
use crate::settings::{KafkaStart, KafkaTopic};
use crate::telemetry::say;

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
        let mut new = Vec::new();
        for topic in &self.reader.topics {
            let found = self.consumer.fetch_metadata(Some(&topic.topic)).await;
            match found.map(|found| found.topics.into_iter().next()) {
                Ok(Some(info)) => new.extend(self.new_of(topic, &info).await?),
                Ok(None) | Err(KrafkaError::UnknownTopic { .. }) => {
                    self.forget(&topic.topic).await?;
                    let why = "there is no such topic; it is looked for again";
                    self.reader.complain(&topic.topic, why);
                }
                Err(error) => self.reader.complain(&topic.topic, &error.to_string()),
            }
        }
        let is_watching = self.watched_at.elapsed() >= WATCH_INTERVAL;
        let watched = self
            .read
            .values()
            .filter(|_| is_watching)
            .map(|reading| &reading.partition);
        let epochs: Vec<u128> = new
            .iter()
            .chain(watched)
            .map(|partition| partition.epoch)
            .collect();
        if epochs.is_empty() {
            return Ok(());
        }
        let elsewhere = self.ask(&epochs).await;
        if let (true, Ok(elsewhere)) = (is_watching, &elsewhere) {
            self.watched_at = Instant::now();
            self.watch_others(elsewhere).await?;
        }
        self.begin(new, &elsewhere).await
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
        numbers.retain(|number| topic.has(*number));
        numbers.sort_unstable();
        if numbers.is_empty() {
            let why = "it has none of the partitions that are to be read";
            self.reader.complain(&name, why);
        }
        numbers.retain(|number| {
            let key = (name.clone(), *number);
            !self.given_up.contains(&key) && !self.read.contains_key(&key)
        });
        let new = numbers
            .into_iter()
            .map(|number| self.partition(&name, number, &info.topic_id));
        Ok(new.collect())
    }

    fn partition(&self, topic: &Arc<str>, number: i32, id: &[u8; 16]) -> Partition {
        let name = [
            EPOCH_PREFIX,
            self.cluster.as_bytes(),
            b" ",
            topic.as_bytes(),
            b" ",
            id,
        ];
        let name = [&name.concat(), &number.to_le_bytes()[..]].concat();
        Partition {
            topic: topic.clone(),
            number,
            epoch: xxh3_128(&name),
            labels: Arc::new(entry::labels_of(topic, number)),
        }
    }

    /// What the other nodes hold of these epochs, or who does not answer.
    async fn ask(&self, epochs: &[u128]) -> Result<BatchSet, String> {
        let Some(elsewhere) = self.shared().parts.elsewhere.clone() else {
            return Ok(BatchSet::default());
        };
        let mut wanted = BatchSet::default();
        let (from, to) = (0, u64::MAX);
        epochs
            .iter()
            .for_each(|epoch| wanted.insert_run(*epoch, Interval { from, to }));
        let asked = tokio::task::spawn_blocking(move || elsewhere(&wanted)).await;
        asked.unwrap_or_else(|_| Err("the nodes could not be asked".to_owned()))
    }

    /// Begins partitions of which it is known how far they were read.
    async fn begin(
        &mut self,
        new: Vec<Partition>,
        elsewhere: &Result<BatchSet, String>,
    ) -> Result<(), End> {
        for partition in new {
            let name = partition.name();
            let elsewhere = match elsewhere {
                Ok(elsewhere) => elsewhere,
                Err(why) => {
                    let why = format!(
                        "it is not read before it is known what each node has of it: {why}; a node that \
                         does not come back is given up by `logpond cluster forget`"
                    );
                    self.reader.complain(&name, &why);
                    continue;
                }
            };
            let held = (self.shared().parts.held)(partition.epoch);
            let noted = self.shared().positions().next(partition.epoch);
            let ends = [&held, elsewhere].map(|held| behind(held, partition.epoch));
            let next = match ends.into_iter().chain([noted]).flatten().max() {
                Some(next) => Some(next),
                None => self.first_offset(&partition, &name).await,
            };
            if let Some(next) = next {
                self.read_on(Reading { partition, next }).await?;
            }
        }
        Ok(())
    }

    /// Adds a partition to those that are read.
    async fn read_on(&mut self, reading: Reading) -> Result<(), End> {
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
    async fn assign(&self, topic: &str) -> Result<(), End> {
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
        self.given_up.retain(|(name, _)| **name != *topic);
        match read == self.read.len() {
            true => Ok(()),
            // A topic that is gone cannot be looked up; nothing of it is read any more.
            false => drop_error(self.assign(topic).await),
        }
    }

    /// Where a partition is begun that was never read. That is noted: a restart before its first message
    /// begins at the same.
    async fn first_offset(&self, partition: &Partition, name: &str) -> Option<u64> {
        let (topic, number) = (&partition.topic, partition.number);
        let (low, high) = match self.consumer.fetch_watermarks(topic, number).await {
            Ok(ends) => ends,
            Err(error) => {
                self.reader.complain(name, &error.to_string());
                return None;
            }
        };
        let first = match self.shared().start {
            KafkaStart::Earliest => low,
            KafkaStart::Latest => high,
        };
        let first = u64::try_from(first).ok()?;
        self.shared()
            .positions()
            .note(partition.epoch, first, || name.to_owned());
        self.shared().save();
        Some(first)
    }

    /// Gives up what another node has read farther: it reads it, too.
    async fn watch_others(&mut self, elsewhere: &BatchSet) -> Result<(), End> {
        let is_ahead = |reading: &&Reading| {
            behind(elsewhere, reading.partition.epoch).is_some_and(|end| end > reading.next)
        };
        let others = self.read.values().filter(is_ahead);
        let others: Vec<Partition> = others.map(|reading| reading.partition.clone()).collect();
        for partition in others {
            let why = "another node reads this partition, too, and is ahead: it is left to that node, and \
                       messages may be there twice; name each partition on one node only";
            self.reader.complain(&partition.name(), why);
            self.count(&partition, |counted| counted.is_read = false);
            let key: Key = (partition.topic.clone(), partition.number);
            self.read.remove(&key);
            self.given_up.insert(key);
            self.assign(&partition.topic).await?;
        }
        Ok(())
    }
}

fn drop_error(result: Result<(), End>) -> Result<(), End> {
    match result {
        Err(End::Stop) => Err(End::Stop),
        _ => Ok(()),
    }
}
