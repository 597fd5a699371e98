//! The endpoints that several rows of the table of routes have.

use super::{Endpoint, Shipper};
use crate::view::Reach;
use crate::{elastic, grafana, loki, saved, splunk};

pub(super) const ES_BULK: Endpoint = elastic(elastic::Question::Bulk);
pub(super) const ES_DOCUMENT: Endpoint = elastic(elastic::Question::Document);
pub(super) const ES_LICENSE: Endpoint = elastic(elastic::Question::License);
pub(super) const ES_NOTHING: Endpoint = elastic(elastic::Question::Nothing);
pub(super) const ES_HEALTH: Endpoint = elastic(elastic::Question::Health);
pub(super) const ES_NODES: Endpoint = elastic(elastic::Question::Nodes);
pub(super) const ES_TEMPLATE: Endpoint = elastic(elastic::Question::Template);
pub(super) const ES_SETUP: Endpoint = elastic(elastic::Question::Setup);
pub(super) const ES_REFRESH: Endpoint = elastic(elastic::Question::Refresh);
pub(super) const ES_CAT_HEALTH: Endpoint = elastic(elastic::Question::CatHealth);
pub(super) const ES_INDEX: Endpoint = elastic(elastic::Question::Index);
pub(super) const ES_SEARCH: Endpoint = elastic_read(elastic::ReadQuestion::Search);
pub(super) const ES_MULTI_SEARCH: Endpoint = elastic_read(elastic::ReadQuestion::MultiSearch);
pub(super) const ES_COUNT: Endpoint = elastic_read(elastic::ReadQuestion::Count);
pub(super) const ES_FIELD_CAPABILITIES: Endpoint =
    elastic_read(elastic::ReadQuestion::FieldCapabilities);
pub(super) const ES_SCROLL: Endpoint = elastic_read(elastic::ReadQuestion::Scroll);
pub(super) const ES_POINT_IN_TIME: Endpoint = elastic_read(elastic::ReadQuestion::PointInTime);
pub(super) const ES_MAPPING: Endpoint = elastic_read(elastic::ReadQuestion::Mapping);
pub(super) const ES_CAT_INDICES: Endpoint = elastic_read(elastic::ReadQuestion::CatIndices);
pub(super) const ES_RESOLVE_INDEX: Endpoint = elastic_read(elastic::ReadQuestion::ResolveIndex);
pub(super) const ES_GET: Endpoint = elastic_read(elastic::ReadQuestion::Document);
pub(super) const ES_SOURCE: Endpoint = elastic_read(elastic::ReadQuestion::Source);
pub(super) const ES_MULTI_GET: Endpoint = elastic_read(elastic::ReadQuestion::Documents);
pub(super) const ES_DESCRIBE: Endpoint = elastic_read(elastic::ReadQuestion::Index);
pub(super) const ES_CAT_COUNT: Endpoint = elastic_read(elastic::ReadQuestion::CatCount);
pub(super) const ES_STATS: Endpoint = elastic_read(elastic::ReadQuestion::Stats);
pub(super) const ES_VALIDATE: Endpoint = elastic_read(elastic::ReadQuestion::Validate);
pub(super) const RULE_GROUPS: Endpoint = loki(loki::Question::RuleGroups);
pub(super) const OWN: Endpoint = Endpoint::Ship(Shipper::Own);
pub(super) const LOKI: Endpoint = Endpoint::Ship(Shipper::Loki);
pub(super) const OTLP: Endpoint = Endpoint::Ship(Shipper::Otlp);
pub(super) const LOGPLEX: Endpoint = Endpoint::Ship(Shipper::Logplex);
pub(super) const DATADOG: Endpoint = Endpoint::Ship(Shipper::Datadog);
pub(super) const FIREHOSE: Endpoint = Endpoint::Ship(Shipper::Firehose);
pub(super) const PUBSUB: Endpoint = Endpoint::Ship(Shipper::PubSub);
pub(super) const LOGPUSH: Endpoint = Endpoint::Ship(Shipper::Logpush);
pub(super) const VICTORIA: Endpoint = Endpoint::Ship(Shipper::JsonLine);
pub(super) const GELF: Endpoint = Endpoint::Ship(Shipper::Gelf);
pub(super) const HEC_EVENT: Endpoint = hec(splunk::Question::Event);
pub(super) const HEC_RAW: Endpoint = hec(splunk::Question::Raw);
pub(super) const HEC_ACK: Endpoint = hec(splunk::Question::Ack);
pub(super) const HEC_HEALTH: Endpoint = hec(splunk::Question::Health);

const fn hec(question: splunk::Question) -> Endpoint {
    Endpoint::Ship(Shipper::Splunk(question))
}

const fn elastic(question: elastic::Question) -> Endpoint {
    Endpoint::Ship(Shipper::Elastic(question))
}

const fn elastic_read(question: elastic::ReadQuestion) -> Endpoint {
    elastic(elastic::Question::Read(question))
}

pub(super) const fn loki(question: loki::Question) -> Endpoint {
    Endpoint::Loki(question)
}

pub(super) const fn grafana(question: grafana::Question) -> Endpoint {
    Endpoint::Grafana(question)
}

impl Endpoint {
    /// The records and the state that it tells or changes. A new endpoint does not compile without it.
    pub(super) fn reach(self) -> Reach {
        match self {
            Endpoint::Ship(shipper) => of_shipper(shipper),
            Endpoint::Loki(question) => of_loki(question),
            Endpoint::Grafana(question) => of_grafana(question),
            Endpoint::Saved(saved::Question::List | saved::Question::Show)
            | Endpoint::Query
            | Endpoint::Flat
            | Endpoint::Sql
            | Endpoint::Aggregate(_)
            | Endpoint::Histogram
            | Endpoint::Patterns
            | Endpoint::JournalEntries
            | Endpoint::JournalField
            | Endpoint::Mcp
            | Endpoint::LogsQl => Reach::Records,
            Endpoint::Batches
            | Endpoint::JournalPage
            | Endpoint::Healthy
            | Endpoint::Ready
            | Endpoint::Greeting
            | Endpoint::Asset
            | Endpoint::Session => Reach::Nothing,
            Endpoint::Saved(saved::Question::Change)
            | Endpoint::Segments
            | Endpoint::Compact
            | Endpoint::Vacuum
            | Endpoint::Forget
            | Endpoint::ClusterStatus
            | Endpoint::ClusterDrain
            | Endpoint::ClusterForget
            | Endpoint::JournalMachine
            | Endpoint::Listeners
            | Endpoint::Running
            | Endpoint::RunningEnd
            | Endpoint::Metrics => Reach::Server,
        }
    }
}

fn of_shipper(shipper: Shipper) -> Reach {
    match shipper {
        Shipper::Elastic(elastic::Question::Read(question)) => of_elastic(question),
        Shipper::Own
        | Shipper::Loki
        | Shipper::Otlp
        | Shipper::Gelf
        | Shipper::Splunk(_)
        | Shipper::Elastic(_)
        | Shipper::Journal
        | Shipper::Logplex
        | Shipper::Datadog
        | Shipper::Firehose
        | Shipper::PubSub
        | Shipper::Logpush
        | Shipper::JsonLine => Reach::Nothing,
    }
}

fn of_elastic(question: elastic::ReadQuestion) -> Reach {
    match question {
        elastic::ReadQuestion::Search
        | elastic::ReadQuestion::MultiSearch
        | elastic::ReadQuestion::Count
        | elastic::ReadQuestion::Mapping
        | elastic::ReadQuestion::FieldCapabilities
        | elastic::ReadQuestion::CatIndices
        | elastic::ReadQuestion::ResolveIndex
        | elastic::ReadQuestion::Scroll
        | elastic::ReadQuestion::PointInTime
        | elastic::ReadQuestion::Document
        | elastic::ReadQuestion::Source
        | elastic::ReadQuestion::Documents
        | elastic::ReadQuestion::Index
        | elastic::ReadQuestion::CatCount
        | elastic::ReadQuestion::Stats
        | elastic::ReadQuestion::Validate => Reach::Records,
    }
}

fn of_loki(question: loki::Question) -> Reach {
    match question {
        loki::Question::Query
        | loki::Question::QueryRange
        | loki::Question::Tail
        | loki::Question::Labels
        | loki::Question::LabelValues
        | loki::Question::Series
        | loki::Question::IndexStats
        | loki::Question::IndexVolume
        | loki::Question::IndexVolumeRange
        | loki::Question::DetectedLabels
        | loki::Question::DetectedFields
        | loki::Question::DetectedFieldValues
        | loki::Question::Patterns
        // Rules run over all records: a request that sees a part is answered as without rules.
        | loki::Question::RuleGroups
        | loki::Question::Rules
        | loki::Question::Alerts => Reach::Records,
        loki::Question::DrilldownLimits
        | loki::Question::FormatQuery
        | loki::Question::BuildInfo => Reach::Nothing,
        loki::Question::Delete => Reach::Server,
    }
}

fn of_grafana(question: grafana::Question) -> Reach {
    match question {
        grafana::Question::Health => Reach::Nothing,
        grafana::Question::Search
        | grafana::Question::Metrics
        | grafana::Question::PayloadOptions
        | grafana::Question::Query
        | grafana::Question::Variable
        | grafana::Question::Annotations
        | grafana::Question::TagKeys
        | grafana::Question::TagValues => Reach::Records,
    }
}
