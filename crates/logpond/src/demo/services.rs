//! Logs of the shop's services: an object a line.

use serde_json::{Map, Value, json};

use super::story::POOL;
use super::{Moment, RFC3339_MS};

/// How long the checkout waits for a connection, in milliseconds.
const POOL_WAIT_MS: u64 = 5000;

/// The machines of the services.
const MACHINES: [&str; 3] = ["app-1", "app-2", "app-3"];

/// Share of messages that are errors although nothing is wrong, of a thousand.
const ERRORS_ORDINARY: u64 = 2;

/// The service of the incident.
const CHECKOUT: &str = "checkout";

pub(super) fn ordinary(moment: &mut Moment<'_>, out: &mut Vec<u8>) {
    let services = ["cart", "search", "catalogue", "mail", CHECKOUT, CHECKOUT];
    let service = *moment.draw.pick(&services);
    if service == CHECKOUT {
        return checkout(moment, out);
    }
    let order = moment.draw.between(100_000, 180_000);
    let took = moment.draw.skewed(400);
    let number = moment.draw.below(90);
    let (level, message) = match moment.draw.below(1000) {
        share if share < ERRORS_ORDINARY => ("error", format!("{service}: upstream closed early")),
        2..=12 => ("warn", format!("slow answer: {} ms", took + 900)),
        _ => match service {
            "cart" => ("info", format!("cart of order {order} saved")),
            "search" => ("info", format!("search answered with {number} articles")),
            "catalogue" => ("debug", format!("article {number} read from the cache")),
            _ => ("info", format!("mail for order {order} sent")),
        },
    };
    let fields = json!({ "order": order, "duration_ms": took });
    line(moment, (service, level, &message), fields, out);
}

fn checkout(moment: &mut Moment<'_>, out: &mut Vec<u8>) {
    let second = moment.second();
    let order = moment.draw.between(100_000, 180_000);
    if moment.incident.is_failing(second) && moment.draw.is_one_of_thousand(850) {
        return failure(moment, order, out);
    }
    if let Some(used) = moment.incident.connections_in_use(second) {
        let message = format!("{used} of {POOL} database connections are in use");
        let level = if used * 4 >= POOL * 3 { "warn" } else { "info" };
        let fields = json!({ "pool_used": used, "pool_size": POOL });
        return line(moment, (CHECKOUT, level, &message), fields, out);
    }
    let cents = moment.draw.between(500, 30_000);
    let message = format!("order {order} paid");
    let took = moment.draw.skewed(500);
    let fields = json!({ "order": order, "amount_cents": cents, "duration_ms": took });
    line(moment, (CHECKOUT, "info", &message), fields, out);
}

fn failure(moment: &mut Moment<'_>, order: u64, out: &mut Vec<u8>) {
    let message = format!(
        "order {order} failed: no database connection within {POOL_WAIT_MS} ms, \
         pool of {POOL} is exhausted"
    );
    let waiting = moment.draw.between(8, 60);
    let fields = json!({
        "order": order,
        "duration_ms": POOL_WAIT_MS,
        "pool_used": POOL,
        "pool_size": POOL,
        "waiting": waiting,
        "error": { "kind": "PoolTimeout", "retryable": true },
    });
    line(moment, (CHECKOUT, "error", &message), fields, out);
}

/// The retries of the people whose orders fail.
pub(super) fn planted(moment: &mut Moment<'_>, out: &mut Vec<u8>) -> u64 {
    let second = moment.second();
    if !moment.incident.is_failing(second) || second % 2 != 0 {
        return 0;
    }
    let order = moment.draw.between(100_000, 180_000);
    failure(moment, order, out);
    1
}

type Said<'a> = (&'a str, &'a str, &'a str);

fn line(
    moment: &mut Moment<'_>,
    (service, level, message): Said<'_>,
    more: Value,
    out: &mut Vec<u8>,
) {
    let mut object = Map::new();
    object.insert("time".to_owned(), moment.time(RFC3339_MS).into());
    object.insert("level".to_owned(), level.into());
    let machine = *moment.draw.pick(&MACHINES);
    object.insert("hostname".to_owned(), machine.into());
    object.insert("service".to_owned(), service.into());
    object.insert("message".to_owned(), message.into());
    if service == CHECKOUT {
        let release = moment.incident.release(moment.second());
        object.insert("release".to_owned(), release.into());
    }
    let trace = format!("{:016x}", moment.draw.below(u64::MAX));
    object.insert("trace".to_owned(), trace.into());
    if let Value::Object(more) = more {
        object.extend(more);
    }
    out.extend_from_slice(Value::Object(object).to_string().as_bytes());
    out.push(b'\n');
}
