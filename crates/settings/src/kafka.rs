//! Which topics of Kafka are read.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::{SettingsError, Values};

/// The greatest number of a partition; clusters have at most some hundred thousand in all.
const PARTITION_MAX: i32 = 999_999;

/// The longest name of a topic that Kafka allows.
const TOPIC_BYTES_MAX: usize = 249;

/// Where a partition is begun that was never read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KafkaStart {
    /// With what Kafka still has.
    #[default]
    Earliest,
    /// With what comes from then on.
    Latest,
}

/// A topic, or some of its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaTopic {
    /// Brokers to ask first for the others: `HOST:PORT` with commas between them.
    pub brokers: String,
    /// The topic's name.
    pub topic: String,
    /// The partitions that are read; `None` is all of them.
    pub partitions: Option<Vec<RangeInclusive<i32>>>,
}

impl KafkaTopic {
    /// Whether a partition is read.
    pub fn has(&self, partition: i32) -> bool {
        let ranges = self.partitions.as_ref();
        ranges.is_none_or(|ranges| ranges.iter().any(|range| range.contains(&partition)))
    }

    fn parse(text: &str) -> Result<KafkaTopic, String> {
        let expected = || {
            format!(
                "'{text}': expected BROKERS/TOPIC or BROKERS/TOPIC:0-5, such as kafka1:9092/logs"
            )
        };
        let (brokers, rest) = text.rsplit_once('/').ok_or_else(expected)?;
        let (topic, ranges) = match rest.split_once(':') {
            Some((topic, ranges)) => (topic, Some(ranges)),
            None => (rest, None),
        };
        let is_broker = |broker: &str| {
            let port = broker
                .rsplit_once(':')
                .map(|(host, port)| (host, port.parse::<u16>()));
            matches!(port, Some((host, Ok(port))) if !host.is_empty() && port > 0)
        };
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let is_name = (1..=TOPIC_BYTES_MAX).contains(&topic.len()) && topic.bytes().all(is_allowed);
        if !is_name || !brokers.split(',').all(is_broker) {
            return Err(expected());
        }
        let partitions = ranges.map(|ranges| ranges.split(',').map(range).collect());
        Ok(KafkaTopic {
            brokers: brokers.to_owned(),
            topic: topic.to_owned(),
            partitions: partitions.transpose()?,
        })
    }
}

/// `3` or `0-5`.
fn range(text: &str) -> Result<RangeInclusive<i32>, String> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| {
        text.parse()
            .ok()
            .filter(|n| (0..=PARTITION_MAX).contains(n))
    };
    match (number(from), number(to)) {
        (Some(from), Some(to)) if from <= to => Ok(from..=to),
        _ => Err(format!(
            "'{text}': expected a partition or several, such as 3 or 0-5"
        )),
    }
}

/// What is read of Kafka: all of it valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KafkaSettings {
    /// The topics; none is off.
    pub topics: Vec<KafkaTopic>,
    /// Where partitions are begun that were never read.
    pub start: KafkaStart,
    /// The file that says how brokers are talked to.
    pub security: Option<PathBuf>,
}

fn topics(text: &str) -> Result<Vec<KafkaTopic>, String> {
    if matches!(text, "off" | "") {
        return Ok(Vec::new());
    }
    if cfg!(not(feature = "kafka")) {
        return Err("this build cannot read Kafka; take one with the feature `kafka`".to_owned());
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let topics: Vec<KafkaTopic> = lines.map(KafkaTopic::parse).collect::<Result<_, _>>()?;
    for (index, topic) in topics.iter().enumerate() {
        let is_same =
            |other: &KafkaTopic| other.topic == topic.topic && other.brokers == topic.brokers;
        if topics[..index].iter().any(is_same) {
            let (brokers, topic) = (&topic.brokers, &topic.topic);
            return Err(format!(
                "{brokers}/{topic} is there twice: name its partitions in one"
            ));
        }
    }
    Ok(topics)
}

impl Values<'_> {
    /// The topics of Kafka.
    pub(super) fn kafka(&self) -> Result<KafkaSettings, SettingsError> {
        Ok(KafkaSettings {
            topics: self.read("kafka", topics)?,
            start: self.read("kafka-from", |text| match text {
                "earliest" => Ok(KafkaStart::Earliest),
                "latest" => Ok(KafkaStart::Latest),
                _ => Err("expected earliest or latest".to_owned()),
            })?,
            security: self.read("kafka-security", |text| {
                Ok((!matches!(text, "off" | "")).then(|| PathBuf::from(text)))
            })?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_have_brokers_and_perhaps_partitions() {
        let topic = KafkaTopic::parse("a:9092,[::1]:9093/logs.app-1_x:0-2,7").unwrap();
        assert_eq!(topic.brokers, "a:9092,[::1]:9093");
        assert_eq!(topic.topic, "logs.app-1_x");
        let read: Vec<i32> = (0..10).filter(|n| topic.has(*n)).collect();
        assert_eq!(read, [0, 1, 2, 7]);
        let all = KafkaTopic::parse("a:9092/logs").unwrap();
        assert!((0..10).all(|n| all.has(n)));
        let bad = [
            "logs",
            "a/logs",
            "a:0/logs",
            "a:9092/",
            ":9092/logs",
            "a:9092,/logs",
            "a:9092/lo gs",
            "a:9092/logs:",
            "a:9092/logs:5-2",
            "a:9092/logs:-1",
            "a:9092/logs:x",
        ];
        for text in bad {
            let error = KafkaTopic::parse(text).unwrap_err();
            assert!(error.contains("expected"), "{text}: {error}");
        }
    }
}
