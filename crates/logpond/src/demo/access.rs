//! Access logs of the web servers, in the combined format with the virtual host behind.

use super::Moment;

/// Share of requests that fail although nothing is wrong, of a thousand.
const ERRORS_ORDINARY: u64 = 1;

/// Share of requests to the checkout that fail in the incident, of a thousand.
const ERRORS_FAILING: u64 = 820;

/// Paths, each as often as it stands here.
const PATHS: [&str; 16] = [
    "/",
    "/",
    "/",
    "/search",
    "/search",
    "/cart",
    "/cart",
    "/articles",
    "/articles",
    "/articles",
    "/img/pot.png",
    "/img/pot.png",
    "/css/shop.css",
    "/js/shop.js",
    "/api/prices",
    "/healthz",
];

const PLACES: [&str; 4] = [
    "https://www.example.org/",
    "https://news.example.net/garden",
    "https://search.example.net/",
    "-",
];

const AGENTS: [&str; 5] = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X)",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/138.0.0.0",
    "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://bot.example.net/about)",
    "okhttp/4.12.0",
];

/// The page to which orders are sent.
const CHECKOUT: &str = "/checkout";

/// Share of requests that are orders, of a thousand.
const ORDERS: u64 = 60;

pub(super) fn ordinary(moment: &mut Moment<'_>, out: &mut Vec<u8>) {
    let is_order = moment.draw.is_one_of_thousand(ORDERS);
    if is_order {
        return order(moment, out);
    }
    let path = match *moment.draw.pick(&PATHS) {
        "/articles" => format!("/articles/{}", 1 + moment.draw.skewed(400)),
        "/search" => {
            let word = moment
                .draw
                .pick(&["pot", "spade", "seeds", "hose", "gloves"]);
            format!("/search?q={word}")
        }
        path => path.to_owned(),
    };
    let status = match moment.draw.below(1000) {
        share if share < ERRORS_ORDINARY => 500,
        1..=14 => 404,
        15..=90 => 304,
        _ => 200,
    };
    let bytes = if status == 304 {
        0
    } else {
        300 + moment.draw.skewed(60_000)
    };
    line(moment, ("GET", &path, status, bytes), out);
}

fn order(moment: &mut Moment<'_>, out: &mut Vec<u8>) {
    let is_failing = moment.incident.is_failing(moment.second());
    let share = if is_failing {
        ERRORS_FAILING
    } else {
        ERRORS_ORDINARY
    };
    let status = if !moment.draw.is_one_of_thousand(share) {
        201
    } else if is_failing {
        *moment.draw.pick(&[502, 504, 504])
    } else {
        500
    };
    let bytes = moment.draw.between(150, 600);
    line(moment, ("POST", CHECKOUT, status, bytes), out);
}

/// People whose order fails try again: some orders more in each second of the incident.
pub(super) fn planted(moment: &mut Moment<'_>, out: &mut Vec<u8>) -> u64 {
    let second = moment.second();
    if !moment.incident.is_failing(second) || second % 3 != 0 {
        return 0;
    }
    order(moment, out);
    1
}

type Request<'a> = (&'a str, &'a str, u16, u64);

fn line(moment: &mut Moment<'_>, (method, path, status, bytes): Request<'_>, out: &mut Vec<u8>) {
    let client = moment.draw.skewed(250) + 1;
    let network = moment.draw.pick(&["203.0.113", "198.51.100", "192.0.2"]);
    let place = moment.draw.pick(&PLACES);
    let agent = moment.draw.pick(&AGENTS);
    let host = moment
        .draw
        .pick(&["shop.example.com", "shop.example.com", "m.example.com"]);
    let time = moment.time("%d/%b/%Y:%H:%M:%S +0000");
    let text = format!(
        "{network}.{client} - - [{time}] \"{method} {path} HTTP/1.1\" {status} {bytes} \
         \"{place}\" \"{agent}\" \"{host}\"\n"
    );
    out.extend_from_slice(text.as_bytes());
}
