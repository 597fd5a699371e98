//! What each client moves: a table with a bound, never one entry more for whoever comes by.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use logpond_record::cast;
use serde::Serialize;

/// Clients that are told apart. Beyond them the ones are forgotten that have no connection and moved
/// least; what they did counts for the others.
const CLIENTS_MAX: usize = 10_000;

/// Over how long throughput is measured.
pub(crate) const INTERVAL: Duration = Duration::from_secs(10);

/// Handshakes that may come at once, in seconds of those that are allowed.
const BURST_S: u64 = 2;

/// An address, or a network of 64 bits.
#[derive(Debug, Default)]
pub(crate) struct Client {
    active: AtomicUsize,
    connections: AtomicU64,
    bytes_from: AtomicU64,
    bytes_to: AtomicU64,
    /// When the next handshake would be due if they came evenly, in microseconds of the table.
    due_us: AtomicU64,
}

impl Client {
    pub(crate) fn moved(&self, from: u64, to: u64) {
        self.bytes_from.fetch_add(from, Ordering::Relaxed);
        self.bytes_to.fetch_add(to, Ordering::Relaxed);
    }

    fn bytes(&self) -> (u64, u64) {
        let [from, to] = [&self.bytes_from, &self.bytes_to];
        (from.load(Ordering::Relaxed), to.load(Ordering::Relaxed))
    }

    /// Whether one more handshake stays below so many a second, after a burst (the generic cell rate
    /// algorithm, ITU-T I.371). Those that do not, count for nothing.
    fn may_shake_hands(&self, now_us: u64, per_second_max: u32) -> bool {
        let every_us = 1_000_000 / u64::from(per_second_max.max(1));
        let next = |due_us: u64| {
            let due_us = due_us.max(now_us);
            (due_us - now_us <= BURST_S * 1_000_000).then_some(due_us + every_us)
        };
        let (stored, read) = (Ordering::Relaxed, Ordering::Relaxed);
        self.due_us.fetch_update(stored, read, next).is_ok()
    }
}

/// A connection of a client, until this is dropped.
#[derive(Debug)]
pub(crate) struct Visit {
    client: Arc<Client>,
    now_us: u64,
}

impl Visit {
    pub(crate) fn moved(&self, from: u64, to: u64) {
        self.client.moved(from, to);
    }

    pub(crate) fn may_shake_hands(&self, per_second_max: u32) -> bool {
        self.client.may_shake_hands(self.now_us, per_second_max)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.client.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All clients.
#[derive(Debug)]
pub(crate) struct ClientTable {
    table: Mutex<Table>,
    since: Instant,
}

#[derive(Debug, Default)]
struct Table {
    by_address: BTreeMap<IpAddr, Entry>,
    /// Clients that were forgotten, and what they moved.
    forgotten: u64,
    others: Arc<Client>,
    /// When throughput was last measured.
    measured: Option<Instant>,
}

#[derive(Debug, Default)]
struct Entry {
    client: Arc<Client>,
    /// As of the last measurement.
    bytes: (u64, u64),
    bytes_per_s: (f64, f64),
}

impl ClientTable {
    pub(crate) fn new() -> ClientTable {
        ClientTable {
            table: Mutex::default(),
            since: Instant::now(),
        }
    }

    /// A connection of this address begins.
    pub(crate) fn visit(&self, address: IpAddr) -> Visit {
        let now_us = self
            .since
            .elapsed()
            .as_micros()
            .try_into()
            .unwrap_or(u64::MAX);
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let client = table.client(address, CLIENTS_MAX);
        // Still under the lock: who has a connection is not forgotten.
        client.active.fetch_add(1, Ordering::Relaxed);
        client.connections.fetch_add(1, Ordering::Relaxed);
        Visit { client, now_us }
    }

    /// Measures throughput; call it once an [`INTERVAL`].
    pub(crate) fn measure(&self, now: Instant) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let since = table.measured.replace(now).unwrap_or(self.since);
        let seconds = now.saturating_duration_since(since).as_secs_f64().max(1e-3);
        for entry in table.by_address.values_mut() {
            let (bytes, before) = (entry.client.bytes(), entry.bytes);
            let per_s = |now: u64, before: u64| cast::float(now.saturating_sub(before)) / seconds;
            entry.bytes_per_s = (per_s(bytes.0, before.0), per_s(bytes.1, before.1));
            entry.bytes = bytes;
        }
    }

    /// So many of the clients, those that moved most first.
    pub(crate) fn top(&self, count: usize, order: ClientOrder) -> ClientsStatus {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let all = table.by_address.iter();
        let mut clients: Vec<ClientStatus> = all.map(|(at, entry)| entry.status(at)).collect();
        let others = table.others.bytes();
        let status = |clients| ClientsStatus {
            clients,
            known: table.by_address.len(),
            forgotten: table.forgotten,
            forgotten_bytes_from_client: others.0,
            forgotten_bytes_to_client: others.1,
        };
        let by_name = |a: &ClientStatus, b: &ClientStatus| a.client.cmp(&b.client);
        clients.sort_by(|a, b| {
            order
                .key(b)
                .total_cmp(&order.key(a))
                .then_with(|| by_name(a, b))
        });
        clients.truncate(count);
        status(clients)
    }
}

impl Table {
    fn client(&mut self, address: IpAddr, clients_max: usize) -> Arc<Client> {
        if self.by_address.len() >= clients_max && !self.by_address.contains_key(&address) {
            self.forget(clients_max);
        }
        if self.by_address.len() < clients_max || self.by_address.contains_key(&address) {
            self.by_address.entry(address).or_default().client.clone()
        } else {
            self.forgotten += 1;
            self.others.clone()
        }
    }

    /// Forgets up to half of those that have no connection: so many at once that looking for them
    /// costs little for each.
    fn forget(&mut self, clients_max: usize) {
        let idle = self.by_address.iter();
        let idle = idle.filter(|(_, entry)| entry.client.active.load(Ordering::Relaxed) == 0);
        let mut idle: Vec<(u64, IpAddr)> = idle
            .map(|(address, entry)| {
                let (from, to) = entry.client.bytes();
                (from.saturating_add(to), *address)
            })
            .collect();
        let count = idle.len().min((clients_max / 2).max(1));
        if count < idle.len() {
            idle.select_nth_unstable(count);
        }
        for (_, address) in &idle[..count] {
            if let Some(entry) = self.by_address.remove(address) {
                let (from, to) = entry.client.bytes();
                self.others.moved(from, to);
                self.forgotten += 1;
            }
        }
    }
}

impl Entry {
    fn status(&self, address: &IpAddr) -> ClientStatus {
        let (bytes_from_client, bytes_to_client) = self.client.bytes();
        ClientStatus {
            client: match address {
                IpAddr::V6(network) => format!("{network}/64"),
                IpAddr::V4(address) => address.to_string(),
            },
            active: self.client.active.load(Ordering::Relaxed),
            connections: self.client.connections.load(Ordering::Relaxed),
            bytes_from_client,
            bytes_to_client,
            bytes_from_client_per_s: self.bytes_per_s.0,
            bytes_to_client_per_s: self.bytes_per_s.1,
        }
    }
}

/// By what clients are put in order, the most first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientOrder {
    /// Bytes both ways since the proxy began.
    #[default]
    Bytes,
    /// Bytes both ways of late.
    Throughput,
    /// Connections since the proxy began.
    Connections,
    /// Connections that are open.
    Active,
}

impl ClientOrder {
    fn key(self, of: &ClientStatus) -> f64 {
        match self {
            ClientOrder::Bytes => cast::float(of.bytes_from_client + of.bytes_to_client),
            ClientOrder::Throughput => of.bytes_from_client_per_s + of.bytes_to_client_per_s,
            ClientOrder::Connections => cast::float(of.connections),
            ClientOrder::Active => cast::float(of.active),
        }
    }
}

/// What a client did since the proxy began, or since it was last forgotten.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientStatus {
    /// Its address, or its network of IPv6.
    pub client: String,
    /// Connections that are open.
    pub active: usize,
    /// Connections.
    pub connections: u64,
    /// Decrypted bytes that came from it.
    pub bytes_from_client: u64,
    /// Bytes for it, before they were encrypted.
    pub bytes_to_client: u64,
    /// Bytes a second that came from it, over the last 10 seconds that are over.
    pub bytes_from_client_per_s: f64,
    /// The same of bytes for it.
    pub bytes_to_client_per_s: f64,
}

/// Clients, those that are asked for first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientsStatus {
    /// Some of them.
    pub clients: Vec<ClientStatus>,
    /// How many are told apart.
    pub known: usize,
    /// How often one was forgotten, for there are too many.
    pub forgotten: u64,
    /// What those moved.
    pub forgotten_bytes_from_client: u64,
    /// The same to them.
    pub forgotten_bytes_to_client: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn who_moved_most_comes_first() {
        let clients = ClientTable::new();
        let first = clients.visit(address(1));
        first.moved(10, 20);
        let second = clients.visit(address(2));
        second.moved(5, 50);
        drop(clients.visit(address(1)));
        clients.measure(clients.since + Duration::from_secs(10));
        first.moved(1000, 0);
        clients.measure(clients.since + Duration::from_secs(20));
        let names = |order| {
            let status = clients.top(2, order);
            status
                .clients
                .into_iter()
                .map(|one| one.client)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(ClientOrder::Bytes), ["192.0.2.1", "192.0.2.2"]);
        assert_eq!(names(ClientOrder::Connections), ["192.0.2.1", "192.0.2.2"]);
        drop(first);
        assert_eq!(names(ClientOrder::Active), ["192.0.2.2", "192.0.2.1"]);
        let top = clients.top(1, ClientOrder::Throughput);
        assert_eq!(top.known, 2);
        assert_eq!(
            top.clients,
            [ClientStatus {
                client: "192.0.2.1".to_owned(),
                active: 0,
                connections: 2,
                bytes_from_client: 1010,
                bytes_to_client: 20,
                bytes_from_client_per_s: 100.0,
                bytes_to_client_per_s: 0.0,
            }]
        );
    }

    #[test]
    fn the_table_has_a_bound_and_loses_no_byte() {
        let mut table = Table::default();
        let mut held = Vec::new();
        for last in 0..=255 {
            let client = table.client(address(last), 8);
            client.moved(u64::from(last), 1);
            if last % 50 == 0 {
                client.active.fetch_add(1, Ordering::Relaxed);
                held.push(last);
            }
            assert!(table.by_address.len() <= 8);
        }
        for last in held {
            assert!(table.by_address.contains_key(&address(last)), "{last}");
        }
        let known = table.by_address.values().map(|entry| entry.client.bytes());
        let all = known.chain([table.others.bytes()]);
        let sum = all.fold((0, 0), |sum, bytes| (sum.0 + bytes.0, sum.1 + bytes.1));
        assert_eq!(sum, ((0..=255).sum(), 256));
        assert_eq!(table.forgotten as usize + table.by_address.len(), 256);
    }

    #[test]
    fn a_table_of_busy_clients_counts_others_together() {
        let mut table = Table::default();
        for last in 0..10 {
            let client = table.client(address(last), 4);
            client.active.fetch_add(1, Ordering::Relaxed);
            client.moved(1, 0);
        }
        assert_eq!((table.by_address.len(), table.others.bytes()), (4, (6, 0)));
    }

    #[test]
    fn handshakes_come_in_bursts_but_not_for_ever() {
        let client = Client::default();
        let mut now_us = 5_000_000;
        let burst = (0..100)
            .take_while(|_| client.may_shake_hands(now_us, 10))
            .count();
        assert_eq!(burst, 21);
        now_us += 300_000;
        let more = (0..100)
            .take_while(|_| client.may_shake_hands(now_us, 10))
            .count();
        assert_eq!(more, 3);
    }
}
