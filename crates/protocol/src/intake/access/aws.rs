//! Access logs of Amazon Web Services: Application, Network and Classic Load Balancers, S3, CloudFront's standard
//! logs and VPC flow logs of version 2 (the services' user guides, chapters on access logs and flow logs).
//!
//! All are UTC by definition.

use super::clock::Clock;
use super::columns::{Column, MILLISECOND, Pen, SECOND, Take, column};

/// Up to the agent.
const ALB: [Column; 14] = [
    column("type", Take::Word, " "),
    column("", Take::Time(Clock::Iso), " "),
    column("elb", Take::Word, " "),
    column("", Take::Client, " "),
    column("upstream_addr", Take::Text, " "),
    column("request_processing_time", Take::Took(SECOND), " "),
    column("target_processing_time", Take::Took(SECOND), " "),
    column("response_processing_time", Take::Took(SECOND), " "),
    column("status", Take::Status, " "),
    column("upstream_status", Take::Text, " "),
    column("request_length", Take::Number, " "),
    column("bytes", Take::Number, " \""),
    column("", Take::Request, "\" \""),
    column("agent", Take::Plain, "\""),
];

const ALB_TRAILING: [(&str, Take); 18] = [
    ("ssl_cipher", Take::Text),
    ("ssl_protocol", Take::Text),
    ("target_group_arn", Take::Text),
    ("trace_id", Take::Text),
    ("domain_name", Take::Text),
    ("chosen_cert_arn", Take::Text),
    ("matched_rule_priority", Take::Text),
    ("request_creation_time", Take::Text),
    ("actions_executed", Take::Text),
    ("redirect_url", Take::Text),
    ("error_reason", Take::Text),
    ("target_port_list", Take::Text),
    ("target_status_code_list", Take::Text),
    ("classification", Take::Text),
    ("classification_reason", Take::Text),
    ("conn_trace_id", Take::Text),
    ("transformed_host", Take::Text),
    ("transformed_uri", Take::Text),
];

const ELB: [Column; 11] = [
    column("", Take::Time(Clock::Iso), " "),
    column("elb", Take::Word, " "),
    column("", Take::Client, " "),
    column("upstream_addr", Take::Text, " "),
    column("request_processing_time", Take::Took(SECOND), " "),
    column("backend_processing_time", Take::Took(SECOND), " "),
    column("response_processing_time", Take::Took(SECOND), " "),
    column("status", Take::Status, " "),
    column("upstream_status", Take::Text, " "),
    column("request_length", Take::Number, " "),
    column("bytes", Take::Number, " \""),
];

const ELB_TRAILING: [(&str, Take); 3] = [
    ("agent", Take::Plain),
    ("ssl_cipher", Take::Text),
    ("ssl_protocol", Take::Text),
];

const NLB: [Column; 11] = [
    column("type", Take::Word, " "),
    column("log_version", Take::Word, " "),
    column("", Take::Time(Clock::IsoUtc), " "),
    column("elb", Take::Word, " "),
    column("listener", Take::Word, " "),
    column("", Take::Client, " "),
    column("upstream_addr", Take::Text, " "),
    column("connection_ms", Take::Took(MILLISECOND), " "),
    column("tls_handshake_ms", Take::Number, " "),
    column("request_length", Take::Number, " "),
    column("bytes", Take::Number, " "),
];

const NLB_LAST: Column = column("incoming_tls_alert", Take::Text, "");

const NLB_TRAILING: [(&str, Take); 10] = [
    ("chosen_cert_arn", Take::Text),
    ("chosen_cert_serial", Take::Text),
    ("ssl_cipher", Take::Text),
    ("ssl_protocol", Take::Text),
    ("tls_named_group", Take::Text),
    ("domain_name", Take::Text),
    ("alpn_fe_protocol", Take::Text),
    ("alpn_be_protocol", Take::Text),
    ("alpn_client_preference_list", Take::Text),
    ("tls_connection_creation_time", Take::Text),
];

const S3: [Column; 8] = [
    column("bucket_owner", Take::Word, " "),
    column("bucket", Take::Word, " ["),
    column("time_local", Take::Plain, "] "),
    column("remote_addr", Take::Text, " "),
    column("user", Take::Text, " "),
    column("request_id", Take::Text, " "),
    column("operation", Take::Word, " "),
    column("key", Take::Text, " \""),
];

const S3_TRAILING: [(&str, Take); 18] = [
    ("status", Take::Status),
    ("error_code", Take::Text),
    ("bytes", Take::Number),
    ("object_size", Take::Number),
    ("total_time", Take::Took(MILLISECOND)),
    ("turn_around_time", Take::Number),
    ("referer", Take::Plain),
    ("agent", Take::Plain),
    ("version_id", Take::Text),
    ("host_id", Take::Text),
    ("signature_version", Take::Text),
    ("ssl_cipher", Take::Text),
    ("authentication_type", Take::Text),
    ("host", Take::Text),
    ("ssl_protocol", Take::Text),
    ("access_point_arn", Take::Text),
    ("acl_required", Take::Text),
    ("source_region", Take::Text),
];

/// CloudFront's columns, which tabs stand between. The first nineteen have always been there.
const CLOUDFRONT: [Column; 19] = [
    column("", Take::Time(Clock::W3cTab), "\t"),
    column("x_edge_location", Take::Word, "\t"),
    column("bytes", Take::Number, "\t"),
    column("remote_addr", Take::Word, "\t"),
    column("method", Take::Method, "\t"),
    column("cs_host", Take::Text, "\t"),
    column("path", Take::Path, "\t"),
    column("status", Take::Status, "\t"),
    column("referer", Take::Plain, "\t"),
    column("agent", Take::Plain, "\t"),
    column("query", Take::Text, "\t"),
    column("cookie", Take::Text, "\t"),
    column("x_edge_result_type", Take::Text, "\t"),
    column("request_id", Take::Text, "\t"),
    column("host", Take::Text, "\t"),
    column("scheme", Take::Text, "\t"),
    column("request_length", Take::Number, "\t"),
    column("time_taken", Take::Took(SECOND), "\t"),
    column("http_x_forwarded_for", Take::Text, "\t"),
];

const CLOUDFRONT_TRAILING: [(&str, Take); 13] = [
    ("ssl_protocol", Take::Text),
    ("ssl_cipher", Take::Text),
    ("x_edge_response_result_type", Take::Text),
    ("protocol", Take::Text),
    ("fle_status", Take::Text),
    ("fle_encrypted_fields", Take::Text),
    ("remote_port", Take::Number),
    ("time_to_first_byte", Take::Text),
    ("x_edge_detailed_result_type", Take::Text),
    ("sc_content_type", Take::Text),
    ("sc_content_len", Take::Number),
    ("sc_range_start", Take::Number),
    ("sc_range_end", Take::Number),
];

const VPC: [Column; 14] = [
    column("version", Take::Number, " "),
    column("account_id", Take::Word, " "),
    column("interface_id", Take::Word, " "),
    column("srcaddr", Take::Word, " "),
    column("dstaddr", Take::Word, " "),
    column("srcport", Take::Number, " "),
    column("dstport", Take::Number, " "),
    column("protocol", Take::Number, " "),
    column("packets", Take::Number, " "),
    column("bytes", Take::Number, " "),
    column("", Take::Time(Clock::Seconds), " "),
    column("end", Take::Number, " "),
    column("action", Take::Word, " "),
    column("log_status", Take::Word, ""),
];

/// Draws a line of an Application Load Balancer.
pub(super) fn alb<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let rest = pen.columns(line, &ALB)?;
    pen.trailing(rest, &ALB_TRAILING);
    Some(())
}

/// Draws a line of a Classic Load Balancer.
pub(super) fn elb<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let rest = pen.columns(line, &ELB)?;
    let end = super::closing_quote(rest)?;
    // Of connections it is `- - - `.
    match rest[..end].trim_end() {
        "- - -" => pen.sketch.literal(&rest[..end]),
        _ => pen.request(&rest[..end]),
    }
    pen.sketch.literal("\"");
    pen.trailing(&rest[end + 1..], &ELB_TRAILING);
    Some(())
}

/// Draws a line of a Network Load Balancer.
pub(super) fn nlb<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let rest = pen.columns(line, &NLB)?;
    let length = rest.find(' ').unwrap_or(rest.len());
    let (alert, rest) = rest.split_at(length);
    pen.value(NLB_LAST.name, NLB_LAST.take, alert)?;
    pen.trailing(rest, &NLB_TRAILING);
    Some(())
}

/// Draws a line of S3.
pub(super) fn s3<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let [owner, bucket, _, ..] = &S3;
    let rest = pen.columns(line, &[*owner, *bucket])?;
    let rest = pen.usual_time(rest)?;
    pen.sketch.literal("] ");
    let rest = pen.columns(rest.strip_prefix("] ")?, &S3[3..])?;
    let end = super::closing_quote(rest)?;
    match &rest[..end] {
        "-" => pen.sketch.literal("-"),
        request => pen.request(request),
    }
    pen.sketch.literal("\"");
    pen.trailing(&rest[end + 1..], &S3_TRAILING);
    Some(())
}

/// Draws a line of CloudFront.
pub(super) fn cloudfront<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let mut rest = pen.columns(line, &CLOUDFRONT)?;
    for (name, take) in &CLOUDFRONT_TRAILING {
        let length = rest.find('\t').unwrap_or(rest.len());
        let (value, after) = rest.split_at(length);
        pen.value(name, *take, value)?;
        let Some(after) = after.strip_prefix('\t') else {
            return Some(());
        };
        pen.sketch.literal("\t");
        rest = after;
    }
    pen.surplus(rest);
    Some(())
}

/// Draws a line of VPC flow logs in the default format.
pub(super) fn vpc<'a>(line: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<()> {
    let is_interface = line.split(' ').nth(2)?.starts_with("eni-");
    if !is_interface || !line.ends_with("OK") && !line.ends_with("DATA") {
        return None;
    }
    let rest = pen.columns(line, &VPC)?;
    rest.is_empty().then_some(())
}
