//! The endpoints that several rows of the table of routes have.

use super::{Endpoint, Shipper};
use crate::{elastic, grafana, loki, splunk};

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
