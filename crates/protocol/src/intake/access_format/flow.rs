//! Flow logs of Amazon's VPC and Transit Gateway whose first line names their columns, as they are delivered to S3 (Amazon
//! VPC User Guide, "Flow log records"; Transit Gateway, "Flow log records").
//!
//! ```text
//! version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes start end action log-status
//! ```
//!
//! Invariant: a line is a header only if all of its words are names of columns, and addresses are among them.

use crate::intake::access::{Clock, Take};

use super::listed::Holds;

/// Columns that a header needs: what makes a record one of a flow.
pub(crate) const MARK: &str = "srcaddr";

/// Fewer columns are a few words rather than a header.
const COLUMNS_MIN: usize = 4;

/// Columns that are whole numbers.
const NUMBERS: [&str; 12] = [
    "version",
    "srcport",
    "dstport",
    "protocol",
    "packets",
    "bytes",
    "tcp-flags",
    "traffic-path",
    "packets-lost-no-route",
    "packets-lost-blackhole",
    "packets-lost-mtu-exceeded",
    "packets-lost-ttl-expired",
];

/// The times at which a flow began and ended, in seconds.
const START: &str = "start";
const END: &str = "end";

/// Columns that are text.
const TEXTS: [&str; 46] = [
    "account-id",
    "interface-id",
    "srcaddr",
    "dstaddr",
    "action",
    "log-status",
    "vpc-id",
    "subnet-id",
    "instance-id",
    "type",
    "pkt-srcaddr",
    "pkt-dstaddr",
    "region",
    "az-id",
    "sublocation-type",
    "sublocation-id",
    "pkt-src-aws-service",
    "pkt-dst-aws-service",
    "flow-direction",
    "reject-reason",
    "encryption-status",
    "ecs-cluster-arn",
    "ecs-cluster-name",
    "ecs-container-instance-arn",
    "ecs-container-instance-id",
    "ecs-container-id",
    "ecs-second-container-id",
    "ecs-service-name",
    "ecs-task-definition-arn",
    "ecs-task-arn",
    "ecs-task-id",
    "resource-id",
    "resource-type",
    "tgw-id",
    "tgw-attachment-id",
    "tgw-pair-attachment-id",
    "tgw-src-vpc-account-id",
    "tgw-dst-vpc-account-id",
    "tgw-src-vpc-id",
    "tgw-dst-vpc-id",
    "tgw-src-subnet-id",
    "tgw-dst-subnet-id",
    "tgw-src-eni",
    "tgw-dst-eni",
    "tgw-src-az-id",
    "tgw-dst-az-id",
];

/// True for a line that names the columns of the lines behind it.
pub(crate) fn is_header(line: &[u8]) -> bool {
    let Some(b'a'..=b'z') = line.first() else {
        return false;
    };
    let is_known = |word: &[u8]| {
        let is_it = |name: &&str| name.as_bytes() == word;
        let names = NUMBERS.iter().chain(&TEXTS).chain(&[START, END]);
        names.into_iter().any(is_it)
    };
    let mut words = line.trim_ascii_end().split(|byte| *byte == b' ');
    let count = words.clone().count();
    count >= COLUMNS_MIN && words.clone().any(|word| word == MARK.as_bytes()) && words.all(is_known)
}

/// The names of a header with what their columns hold.
pub(super) fn columns(header: &str) -> impl Iterator<Item = (&str, Holds)> {
    let has_start = header.split(' ').any(|name| name == START);
    header.trim_end().split(' ').map(move |name| {
        let is_time = name == START || name == END && !has_start;
        let holds = match name {
            _ if is_time => Holds::Time(Clock::Seconds),
            END => Holds::Known(Take::Number),
            _ if NUMBERS.contains(&name) => Holds::Known(Take::Number),
            _ => Holds::Known(Take::Text),
        };
        (name, holds)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_told_from_words() {
        for (line, expected) in [
            ("version account-id interface-id srcaddr dstaddr", true),
            ("srcaddr dstaddr start end\r", true),
            ("srcaddr dstaddr start", false),
            ("version account-id start end", false),
            ("srcaddr dstaddr start end of the line", false),
            ("2 1234 eni-1 192.0.2.7 192.0.2.8", false),
            ("", false),
        ] {
            assert_eq!(is_header(line.as_bytes()), expected, "{line}");
        }
    }
}
