//! Reads the topics of one cluster of brokers, until the stop.

mod partitions;
mod remembered;
mod trouble;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::maybe_done;
use krafka::Kafka;
use krafka::admin::DescribeClusterOptions;
use krafka::consumer::{AutoOffsetReset, Consumer, ConsumerRecord, IsolationLevel, TopicPartition};
use krafka::error::KrafkaError;
use logpond_record::{Batch, EntryKind, Labels, Timestamp};
use logpond_segment::batches::{BatchId, BatchSet};
use logpond_segment::sources::Interval;
use remembered::PartitionHistory;
use trouble::PartitionError;

use super::appetite::FetchLimits;
use super::connect::Security;
use super::counters::{Counters, Partition as Counted};
use super::positions::Positions;
use super::runs::{BatchSlice, cut, first_missing, gaps};
use super::storing::{Piece, Work, store, store_all};
use super::{Parts, entry};
use logpond_host::hostname;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::{Intake, warn};
use logpond_settings::{KafkaStart, KafkaTopic};

/// What the names of batches are told apart by from those of other intakes.
const EPOCH_PREFIX: &[u8] = b"kafka ";

/// Messages that are taken over at a time, and so many more may be decoded.
const MESSAGES_MAX: i32 = 10_000;

/// What a batch of messages may become when it is decompressed.
const DECOMPRESSED_BYTES_MAX: usize = 64 << 20;

/// How long a broker waits for messages before it says that there are none.
const FETCH_WAIT: Duration = Duration::from_millis(500);

/// How often it is seen which partitions there are, and so how old what is known of topics and leaders may get.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// How often it is seen whether other nodes read the same.
const WATCH_INTERVAL: Duration = Duration::from_secs(15);

/// How long nothing is heard of a partition before its leader is asked: a broker says nothing of partitions that
/// have no news. So often it is asked.
const SILENT_TIME: Duration = Duration::from_secs(30);

/// How long the leaders' answers to that are waited for: nothing is fetched meanwhile.
const LISTEN_TIME_MAX: Duration = Duration::from_secs(5);

/// How long a partition is left alone whose messages cannot be decoded.
const STOPPED_TIME: Duration = Duration::from_secs(30);

/// How often positions are written.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// The pauses after a failure: the first, then twice as long each time, up to the last.
pub(super) const PAUSES: (Duration, Duration) =
    (Duration::from_millis(250), Duration::from_secs(15));

/// Failed fetches in a row after which brokers are connected to anew.
const FAILURES_MAX: u32 = 8;

/// How long the same trouble is not said again.
const SAID_FOR: Duration = Duration::from_secs(300);

/// How long a consumer may take to take its leave of brokers.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(1);

/// How long what is under way may take at the stop.
const END_TIME_MAX: Duration = logpond_host::shutdown::DRAIN_TIME_MAX;

/// The state that all readers share.
pub(super) struct ReaderContext {
    pub(super) parts: Parts,
    start: KafkaStart,
    positions: Mutex<Positions>,
    pub(super) counters: Arc<Counters>,
    hostname: String,
}

impl ReaderContext {
    pub(super) fn new(
        parts: Parts,
        start: KafkaStart,
        positions: Positions,
        counters: Arc<Counters>,
    ) -> Arc<ReaderContext> {
        Arc::new(ReaderContext {
            parts,
            start,
            positions: Mutex::new(positions),
            counters,
            hostname: hostname::own(),
        })
    }

    pub(super) fn positions(&self) -> MutexGuard<'_, Positions> {
        self.positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the positions; what fails is tried again with the next change.
    pub(super) fn save(&self) {
        if let Err(error) = self.positions().save() {
            warn(&format!("positions of Kafka cannot be written: {error}"));
        }
    }
}

/// A partition of a topic that has this id.
#[derive(Clone)]
pub(super) struct Partition {
    pub(super) topic: Arc<str>,
    pub(super) number: i32,
    pub(super) epoch: u128,
    labels: Arc<Labels>,
}

impl Partition {
    /// What people call it.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.topic, self.number)
    }

    /// What the client calls it.
    fn of_client(&self) -> TopicPartition {
        TopicPartition::new(&*self.topic, self.number)
    }
}

/// A partition that is read.
struct PartitionReader {
    partition: Partition,
    /// Where it was begun.
    from: u64,
    /// The offset behind all that was handed on to be stored.
    next: u64,
    /// What was held of it from there on, by whatever node, when it was begun.
    held: BatchSet,
    /// Why nothing comes of it, as far as that is known.
    trouble: PartitionError,
}

impl PartitionReader {
    fn held(&self) -> Vec<Interval> {
        self.held.of_epoch(self.partition.epoch).collect()
    }
}

type Key = (Arc<str>, i32);

/// Why a session with brokers ended.
pub(super) enum End {
    /// The process stops.
    Stop,
    /// Something failed; try again later.
    Failed(String),
}

impl From<KrafkaError> for End {
    fn from(error: KrafkaError) -> End {
        End::Failed(error.to_string())
    }
}

/// Reads from one cluster of brokers.
pub(super) struct Reader {
    brokers: Arc<str>,
    topics: Vec<KafkaTopic>,
    security: Security,
    pub(super) shared: Arc<ReaderContext>,
    pub(super) shutdown: Shutdown,
    remembered: Mutex<PartitionHistory>,
    /// What was said of trouble last, by what it is about.
    said: Mutex<BTreeMap<String, (String, Instant)>>,
}

impl Reader {
    /// A reader for each of the clusters that topics are of.
    pub(super) fn of_each_cluster(
        topics: &[KafkaTopic],
        security: &Security,
        shared: &Arc<ReaderContext>,
    ) -> Vec<Reader> {
        let brokers: BTreeSet<&str> = topics.iter().map(|topic| &*topic.brokers).collect();
        let reader = |brokers: &str| Reader {
            brokers: brokers.into(),
            topics: topics
                .iter()
                .filter(|topic| topic.brokers == brokers)
                .cloned()
                .collect(),
            security: security.clone(),
            shared: shared.clone(),
            shutdown: shared.parts.shutdown.clone(),
            remembered: Mutex::default(),
            said: Mutex::default(),
        };
        brokers.into_iter().map(reader).collect()
    }

    /// Reads until the stop, whatever fails.
    pub(super) async fn run(self) {
        let mut pause = PAUSES.0;
        while !self.shutdown.is_stopping() {
            let begun = Instant::now();
            match self.session().await {
                Err(End::Failed(why)) => self.complain("", &why),
                Ok(()) | Err(End::Stop) => return,
            }
            if begun.elapsed() > PAUSES.1 {
                pause = PAUSES.0;
            }
            self.wait(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Says what is wrong, unless it was said lately of the same thing; counts it.
    pub(super) fn complain(&self, of: &str, why: &str) {
        self.shared.counters.add_error(&self.brokers);
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = said
            .get(of)
            .is_none_or(|(text, at)| text != why || at.elapsed() > SAID_FOR);
        if is_new {
            let of_topic = if of.is_empty() {
                String::new()
            } else {
                format!("/{of}")
            };
            warn(&format!("Kafka at {}{of_topic}: {why}", self.brokers));
            said.insert(of.to_owned(), (why.to_owned(), Instant::now()));
        }
    }

    fn remembered(&self) -> MutexGuard<'_, PartitionHistory> {
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn wait(&self, time: Duration) {
        let mut shutdown = self.shutdown.clone();
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            () = shutdown.stopping() => {}
        }
    }

    async fn session(&self) -> Result<(), End> {
        let fetch_limits = FetchLimits::default();
        let connect = async {
            let kafka = self.security.connect(&self.brokers).await?;
            let options = DescribeClusterOptions::default();
            let cluster = kafka.admin().describe_cluster(options).await?.cluster_id;
            let consumer = consumer_of(&kafka, fetch_limits.bytes()).await?;
            Ok((kafka, cluster, consumer))
        };
        let (kafka, cluster, consumer) = unless_stopping(&self.shutdown, connect).await?;
        let mut session = Session {
            reader: self,
            kafka,
            consumer,
            fetch_limits,
            cluster,
            ids: BTreeMap::new(),
            read: BTreeMap::new(),
            looked_at: None,
            watched_at: Instant::now(),
            saved_at: Instant::now(),
            listened_at: Instant::now(),
        };
        let ended = session.run().await;
        for reading in session.read.values() {
            let Partition { topic, number, .. } = &reading.partition;
            self.shared
                .counters
                .of(topic, *number, |counted| counted.is_read = false);
        }
        let _ = tokio::time::timeout(CLOSE_TIME_MAX, session.consumer.close()).await;
        ended
    }
}

/// Does what may have to wait for brokers or other nodes, unless a stop is asked for.
async fn unless_stopping<T>(
    shutdown: &Shutdown,
    work: impl Future<Output = Result<T, End>>,
) -> Result<T, End> {
    let mut shutdown = shutdown.clone();
    tokio::select! {
        done = work => done,
        () = shutdown.stopping() => Err(End::Stop),
    }
}

/// A client that asks each broker for so many bytes at a time.
async fn consumer_of(kafka: &Kafka, bytes: i32) -> krafka::Result<Consumer> {
    let consumer = kafka
        .consumer_without_group()
        .auto_offset_reset(AutoOffsetReset::None)
        .enable_auto_commit(false)
        .isolation_level(IsolationLevel::ReadCommitted)
        .fetch_max_bytes(bytes)
        .max_partition_fetch_bytes(bytes)
        .max_poll_records(MESSAGES_MAX)
        .max_buffered_records(MESSAGES_MAX)
        .max_decompressed_size(DECOMPRESSED_BYTES_MAX)
        .fetch_max_wait(FETCH_WAIT)
        .lag_staleness_threshold(SILENT_TIME)
        .metrics_push(false);
    consumer.build().await
}

/// Reading while the brokers are the same.
struct Session<'r> {
    reader: &'r Reader,
    kafka: Kafka,
    consumer: Consumer,
    fetch_limits: FetchLimits,
    /// The id of the cluster of brokers.
    cluster: String,
    /// Ids of the topics that are read.
    ids: BTreeMap<Arc<str>, [u8; 16]>,
    read: BTreeMap<Key, PartitionReader>,
    looked_at: Option<Instant>,
    watched_at: Instant,
    saved_at: Instant,
    /// When it was seen last whether brokers are silent.
    listened_at: Instant,
}

impl Session<'_> {
    fn shared(&self) -> &ReaderContext {
        &self.reader.shared
    }

    /// Reads until the stop, or until something fails.
    async fn run(&mut self) -> Result<(), End> {
        let shutdown = self.reader.shutdown.clone();
        let (mut work, mut failures) = (Vec::new(), 0);
        loop {
            unless_stopping(&shutdown, self.look()).await?;
            let polled = self.round(&work).await?;
            work.clear();
            self.save_now_and_then();
            work = match polled {
                Ok(messages) => {
                    failures = 0;
                    unless_stopping(&shutdown, self.take(messages)).await?
                }
                Err(error) => {
                    let bearing = self.bear(error, &mut failures);
                    unless_stopping(&shutdown, bearing).await?;
                    Vec::new()
                }
            };
            unless_stopping(&shutdown, self.note_lags()).await?;
        }
    }

    /// Does what a failed fetch asks for. What was fetched of other partitions meanwhile is given out by the
    /// next call.
    async fn bear(&mut self, error: KrafkaError, failures: &mut u32) -> Result<(), End> {
        if let KrafkaError::NoOffset { partitions } = error {
            for (topic, number) in partitions {
                self.out_of_range(&topic, number).await?;
            }
            return Ok(());
        }
        if self.stop_undecodable(&error.to_string()).await {
            return Ok(());
        }
        *failures += 1;
        if *failures > FAILURES_MAX {
            return Err(error.into());
        }
        self.reader.complain("", &error.to_string());
        self.reader.wait(PAUSES.0).await;
        Ok(())
    }

    /// Fetches while what was fetched before is stored.
    async fn round(&self, work: &[Work]) -> Result<krafka::Result<Vec<ConsumerRecord>>, End> {
        let mut shutdown = self.reader.shutdown.clone();
        let mut stored = pin!(maybe_done(store_all(self.reader, work)));
        let polled = self.consumer.poll(FETCH_WAIT);
        let both = async { tokio::join!(stored.as_mut(), polled).1 };
        let polled = tokio::select! {
            polled = both => Ok(polled),
            () = shutdown.stopping() => Err(End::Stop),
        };
        if polled.is_err() {
            // What is under way becomes durable or is not there; either is in order, the first is tidier.
            let _ = tokio::time::timeout(END_TIME_MAX, stored.as_mut()).await;
        }
        stored.take_output().unwrap_or(Err(End::Stop))?;
        polled
    }

    fn save_now_and_then(&mut self) {
        if self.saved_at.elapsed() >= SAVE_INTERVAL {
            self.saved_at = Instant::now();
            self.shared().save();
        }
    }

    async fn note_lags(&mut self) -> Result<(), End> {
        let lags = self.consumer.lag().await;
        self.listen_now_and_then(&lags).await;
        for reading in self.read.values() {
            let lag = lags.get(&reading.partition.of_client());
            let end = lag.and_then(|lag| u64::try_from(lag.last_stable_offset?).ok());
            let end = end.max(reading.trouble.end());
            let lag = end.map_or(0, |end| end.saturating_sub(reading.next));
            let is_read = reading.trouble.is_none();
            self.count(&reading.partition, |counted| {
                counted.lag = lag;
                counted.is_read = is_read;
            });
        }
        Ok(())
    }

    fn count(&self, of: &Partition, change: impl FnOnce(&mut Counted)) {
        self.shared().counters.of(&of.topic, of.number, change);
    }
}

/// What was fetched.
impl Session<'_> {
    /// Makes batches of messages.
    async fn take(&mut self, messages: Vec<ConsumerRecord>) -> Result<Vec<Work>, End> {
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        self.check_ids().await?;
        let bytes = messages.iter().map(entry::decoded_size_of).sum();
        let is_other = self.fetch_limits.note(bytes);
        let mut by_partition: BTreeMap<Key, Vec<ConsumerRecord>> = BTreeMap::new();
        for message in messages {
            let key = (message.topic.clone(), message.partition);
            by_partition.entry(key).or_default().push(message);
        }
        let mut work = Vec::new();
        for (key, messages) in by_partition {
            let position = self.consumer.position(&key.0, key.1).await;
            let end = position.and_then(|end| u64::try_from(end).ok());
            // What is not read any more is thrown away.
            if let (Some(reading), Some(end)) = (self.read.get_mut(&key), end) {
                let end = end.max(reading.next);
                let held = reading.held();
                let gaps = gaps(&held, reading.next, end);
                // A run that is held is not fetched.
                let next = first_missing(&held, end);
                reading.next = next;
                reading.trouble = PartitionError::default();
                let partition = reading.partition.clone();
                work.push(self.work_of(partition, &messages, &gaps, next));
                if next > end {
                    self.seek(&key.0, key.1, next).await?;
                }
            }
        }
        if is_other {
            self.connect_anew().await?;
        }
        Ok(work)
    }

    /// Asks for another number of bytes from now on: a client of its own, which goes on where this one is.
    async fn connect_anew(&mut self) -> Result<(), End> {
        let consumer = consumer_of(&self.kafka, self.fetch_limits.bytes()).await?;
        let before = std::mem::replace(&mut self.consumer, consumer);
        let _ = tokio::time::timeout(CLOSE_TIME_MAX, before.close()).await;
        let topics: BTreeSet<&Arc<str>> = self.read.keys().map(|(topic, _)| topic).collect();
        for topic in topics {
            self.assign(topic).await?;
        }
        for ((topic, number), reading) in &self.read {
            self.seek(topic, *number, reading.next).await?;
            if reading.trouble.is_stopped() {
                self.consumer.pause(topic, &[*number]).await;
            }
        }
        Ok(())
    }

    /// Begins topics anew that have another id now: what was fetched of them may be of either.
    async fn check_ids(&mut self) -> Result<(), End> {
        let found = self.consumer.fetch_metadata(None).await?;
        for info in found.topics {
            let known = self.ids.get(&*info.name);
            if known.is_some_and(|known| *known != info.topic_id) {
                self.forget(&info.name).await?;
                self.looked_at = None;
            }
        }
        Ok(())
    }

    fn work_of(
        &self,
        partition: Partition,
        messages: &[ConsumerRecord],
        gaps: &[Interval],
        end: u64,
    ) -> Work {
        let shared = self.shared();
        let has_value: Vec<&ConsumerRecord> =
            messages.iter().filter(|m| m.value.is_some()).collect();
        let offset = |message: &ConsumerRecord| u64::try_from(message.offset).unwrap_or(0);
        let sizes: Vec<(u64, usize)> = has_value
            .iter()
            .map(|message| (offset(message), entry::size_of(message)))
            .collect();
        let mut truncated = 0;
        let pieces = cut(&sizes, gaps)
            .into_iter()
            .map(|BatchSlice { messages, run }| {
                let mut batch = entry::batch_of(&partition.labels);
                for message in &has_value[messages] {
                    let is_cut = entry::add(&mut batch, message, shared.parts.line_bytes_max);
                    truncated += u64::from(is_cut);
                }
                let id = BatchId {
                    epoch: partition.epoch,
                    sequence: run.from,
                    attempt: 0,
                    first_sent: Timestamp(0),
                    more: run.to - run.from,
                };
                Piece {
                    id,
                    batch: Arc::new(batch),
                }
            });
        let pieces: Vec<Piece> = pieces.collect();
        let is_known = |message: &&ConsumerRecord| {
            let at = offset(message);
            !gaps.iter().any(|gap| (gap.from..=gap.to).contains(&at))
        };
        let known = messages.iter().filter(is_known).count() as u64;
        let fetched = messages.len() as u64;
        let empty = fetched - has_value.len() as u64;
        self.count(&partition, |counted| {
            counted.fetched += fetched;
            counted.empty += empty;
            counted.known += known;
        });
        shared
            .parts
            .metrics
            .intake(Intake::Kafka)
            .truncated
            .add(truncated);
        Work {
            partition,
            pieces,
            end,
        }
    }

    /// Kafka has not what is to be read next of a partition.
    async fn out_of_range(&mut self, topic: &str, number: i32) -> Result<(), End> {
        let key: Key = (topic.into(), number);
        let Some(reading) = self.read.get(&key) else {
            return Ok(());
        };
        let (partition, next) = (reading.partition.clone(), reading.next);
        let (low, high) = self.ends_of(&partition).await?;
        if low > next {
            let held = reading.held();
            for gap in gaps(&held, next, low) {
                self.note_loss(&partition, gap.from, gap.to + 1).await?;
            }
            let next = first_missing(&held, low);
            if let Some(reading) = self.read.get_mut(&key) {
                reading.next = next;
                reading.trouble = PartitionError::default();
            }
            return self.seek(topic, number, next).await;
        }
        if next > high {
            let why = format!(
                "it ends at {high}, and all before {next} was read: it was cut, or created anew; what comes is \
                 read from {next} on"
            );
            self.reader.complain(&format!("{topic}/{number}"), &why);
        }
        self.looked_at = None;
        self.reader.wait(PAUSES.0).await;
        self.seek(topic, number, next).await
    }

    /// Writes a record of offsets that are gone. It has their numbers, so that it is there once and they
    /// are not looked for again.
    async fn note_loss(&self, of: &Partition, from: u64, to: u64) -> Result<(), End> {
        let lost = to - from;
        let (topic, number) = (&of.topic, of.number);
        self.reader.complain(
            &format!("{topic}/{number}"),
            &format!("{lost} offsets from {from} on were removed before they were read"),
        );
        let labels = hostname::labels_of_server(&self.shared().hostname);
        let mut batch = Batch::new(EntryKind::Line, labels);
        let now = (self.shared().parts.clock)();
        let line = format!(
            "time={now} level=warning msg=\"{lost} offsets of Kafka were removed before they were read\" \
             lost={lost} topic={topic} partition={number} offset={from}"
        );
        batch.push(line.as_bytes());
        let id = BatchId {
            epoch: of.epoch,
            sequence: from,
            attempt: 0,
            first_sent: Timestamp(0),
            more: lost - 1,
        };
        let piece = Piece {
            id,
            batch: Arc::new(batch),
        };
        let work = Work {
            partition: of.clone(),
            pieces: vec![piece],
            end: to,
        };
        store(self.reader, &work, false).await?;
        self.count(of, |counted| counted.lost += lost);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logpond_host::shutdown;

    #[test]
    fn nothing_that_waits_for_brokers_delays_a_stop() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(async {
            let (stopper, shutdown) = shutdown::pair();
            let done = unless_stopping(&shutdown, async { Ok(7) }).await;
            assert!(matches!(done, Ok(7)));
            stopper.stop();
            let silent = std::future::pending::<Result<(), End>>();
            let ended = unless_stopping(&shutdown, silent).await;
            assert!(matches!(ended, Err(End::Stop)));
        });
    }
}
