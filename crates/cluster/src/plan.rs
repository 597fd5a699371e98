//! How many stores a load needs, and how long its records wait for them.
//!
//! Stores are the servers of one queue: a claim of journal files is a job, which one store makes a
//! segment of and has copied. The mean wait is that of Allen and Cunneen ("Probability, Statistics
//! and Queueing Theory", 1990) with the chance to wait of Erlang C; how long the unlucky ones wait
//! follows as if waits were exponential. Records can be asked for all the while: what waits are
//! further copies, so a wait is a time in which one disk has the only copy.

use logpond_record::cast;

/// What one store needs for its work, as it was measured or is assumed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Service {
    /// Seconds for a claim however small: calls, syncs.
    pub fixed_s: f64,
    /// Seconds for each byte of journal beyond that.
    pub per_byte_s: f64,
    /// Squared coefficient of variation of the times of equal claims.
    pub variation: f64,
    /// Squared coefficient of variation of the times between claims: 1 for independent senders,
    /// more for bursts.
    pub arrival_variation: f64,
    /// The share of a store's time that merging takes.
    pub merging: f64,
    /// Bytes of journal for each byte of lines.
    pub journal_per_raw: f64,
    /// Bytes of segments, merged, for each byte of lines.
    pub stored_per_raw: f64,
}

/// The load and the retention that a plan must provide for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Bytes of lines a second, at the busiest hour.
    pub raw_bytes_per_s: f64,
    /// Bytes of lines a second on average, which fill the disks.
    pub raw_bytes_per_s_mean: f64,
    /// How long records are kept, in seconds.
    pub retain_s: f64,
    /// On how many nodes each record is.
    pub copies: usize,
    /// Journal bytes of the largest claim.
    pub claim_bytes: f64,
    /// How long all stores may be gone at once while ingesters take records in, in seconds.
    pub outage_s: f64,
}

/// What it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Stores.
    pub stores: usize,
    /// The share of their time that they work, 1 is all of it.
    pub utilisation: f64,
    /// The same with one store less; 1 or more is a queue that grows.
    pub utilisation_one_lost: f64,
    /// Seconds for a full claim.
    pub service_s: f64,
    /// Seconds that a claim waits for a store, on average.
    pub wait_s_mean: f64,
    /// Seconds that one in a hundred waits for at least.
    pub wait_s_p99: f64,
    /// Claims that wait, on average.
    pub queue_claims: f64,
    /// Seconds to catch up after the outage.
    pub catch_up_s: f64,
    /// Bytes of segments on each store.
    pub store_disk_bytes: f64,
    /// Bytes of journal on all ingesters together at the end of the outage, and half as much again.
    pub ingester_disk_bytes: f64,
    /// Bytes a second between nodes, all together.
    pub network_bytes_per_s: f64,
}

/// Stores work at most this share of their time: with few of them the loss of one weighs more.
fn utilisation_max(stores: usize) -> f64 {
    if stores < 6 { 0.6 } else { 0.7 }
}

/// The most stores that are planned for; beyond it nothing was measured.
const STORES_MAX: usize = 1000;

impl Service {
    /// Seconds of a store for a claim.
    fn seconds(&self, claim_bytes: f64) -> f64 {
        self.fixed_s + self.per_byte_s * claim_bytes
    }
}

impl Plan {
    /// The fewest stores that do. `None` if no number of them up to a thousand does, or a number is
    /// none.
    pub fn new(wanted: &Demand, service: &Service) -> Option<Plan> {
        let fewest = wanted.copies.max(1);
        (fewest..=STORES_MAX)
            .map(|stores| Plan::with(stores, wanted, service))
            .find(|plan| plan.utilisation <= utilisation_max(plan.stores))
    }

    /// What becomes of so many stores.
    pub fn with(stores: usize, wanted: &Demand, service: &Service) -> Plan {
        let journal_bytes_per_s = wanted.raw_bytes_per_s * service.journal_per_raw;
        let service_s = service.seconds(wanted.claim_bytes);
        let claims_per_s = journal_bytes_per_s / wanted.claim_bytes;
        // What merging leaves of each store.
        let rate = (1.0 - service.merging) / service_s;
        let offered = claims_per_s / rate;
        let utilisation = offered / cast::float(stores);
        let waits = chance_to_wait(stores, offered);
        let spread = (service.arrival_variation + service.variation) / 2.0;
        let is_stable = utilisation < 1.0;
        let wait_s_mean = if is_stable {
            waits / (cast::float(stores) * rate - claims_per_s) * spread
        } else {
            f64::INFINITY
        };
        let stored = wanted.raw_bytes_per_s_mean * wanted.retain_s * service.stored_per_raw;
        let copies = cast::float(wanted.copies.max(1));
        Plan {
            stores,
            utilisation,
            utilisation_one_lost: offered / (cast::float(stores) - 1.0),
            service_s,
            wait_s_mean,
            wait_s_p99: if !is_stable {
                f64::INFINITY
            } else if waits > 0.01 {
                wait_s_mean / waits * (100.0 * waits).ln()
            } else {
                0.0
            },
            queue_claims: claims_per_s * wait_s_mean,
            catch_up_s: if is_stable {
                wanted.outage_s * utilisation / (1.0 - utilisation)
            } else {
                f64::INFINITY
            },
            store_disk_bytes: stored * copies / cast::float(stores),
            ingester_disk_bytes: journal_bytes_per_s * wanted.outage_s * 1.5,
            network_bytes_per_s: journal_bytes_per_s
                + (copies - 1.0) * wanted.raw_bytes_per_s * service.stored_per_raw,
        }
    }
}

/// Erlang C: the share of jobs that find all servers busy, where `offered` is the load in servers.
fn chance_to_wait(servers: usize, offered: f64) -> f64 {
    if offered >= cast::float(servers) {
        return 1.0;
    }
    // Erlang B by its recursion, which does not overflow.
    let blocked = (1..=servers).fold(1.0, |blocked, n| {
        offered * blocked / (cast::float(n) + offered * blocked)
    });
    let utilisation = offered / cast::float(servers);
    blocked / (1.0 - utilisation * (1.0 - blocked))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One second a claim of one byte: so waits are in units of the service time.
    fn unit() -> Service {
        Service {
            fixed_s: 1.0,
            per_byte_s: 0.0,
            variation: 1.0,
            arrival_variation: 1.0,
            merging: 0.0,
            journal_per_raw: 1.0,
            stored_per_raw: 0.125,
        }
    }

    fn wanted(raw_bytes_per_s: f64) -> Demand {
        Demand {
            raw_bytes_per_s,
            raw_bytes_per_s_mean: raw_bytes_per_s,
            retain_s: 100.0,
            copies: 2,
            claim_bytes: 1.0,
            outage_s: 600.0,
        }
    }

    /// Mean waits that a simulation of the queue gave, for independent senders.
    #[test]
    fn waits_are_those_of_the_simulated_queue() {
        let table = [
            (3, 0.5, 0.15),
            (3, 0.6, 0.28),
            (3, 0.7, 0.52),
            (6, 0.7, 0.17),
            (6, 0.8, 0.40),
            (12, 0.8, 0.14),
            (12, 0.9, 0.49),
        ];
        for (stores, utilisation, wait) in table {
            let plan = Plan::with(stores, &wanted(utilisation * stores as f64), &unit());
            assert!((plan.utilisation - utilisation).abs() < 1e-9);
            let off = plan.wait_s_mean / wait;
            assert!(
                (0.88..1.15).contains(&off),
                "{stores} at {utilisation}: {plan:?}"
            );
        }
    }

    #[test]
    fn as_few_stores_as_do() {
        let plan = Plan::new(&wanted(1.7), &unit()).unwrap();
        assert_eq!(plan.stores, 3);
        assert!(plan.utilisation_one_lost < 1.0);
        // Six may be busier than five.
        assert_eq!(Plan::new(&wanted(4.1), &unit()).unwrap().stores, 6);
        assert_eq!(
            Plan::new(&wanted(0.001), &unit()).unwrap().stores,
            2,
            "a store a copy"
        );
        assert_eq!(Plan::new(&wanted(1e9), &unit()), None);
        assert_eq!(Plan::new(&wanted(f64::NAN), &unit()), None);
    }

    #[test]
    fn merging_and_bursts_cost() {
        let plain = Plan::with(3, &wanted(1.5), &unit());
        let merging = Service {
            merging: 0.25,
            ..unit()
        };
        let busy = Plan::with(3, &wanted(1.5), &merging);
        assert!((busy.utilisation / plain.utilisation - 4.0 / 3.0).abs() < 1e-9);
        let bursts = Service {
            arrival_variation: 9.0,
            ..unit()
        };
        let late = Plan::with(3, &wanted(1.5), &bursts);
        assert!((late.wait_s_mean / plain.wait_s_mean - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_queue_that_grows_has_no_end() {
        let plan = Plan::with(2, &wanted(2.5), &unit());
        assert!(plan.wait_s_mean.is_infinite() && plan.catch_up_s.is_infinite());
    }

    #[test]
    fn disks_hold_what_is_kept() {
        let plan = Plan::with(4, &wanted(2.0), &unit());
        // 2 bytes a second for 100 s, an eighth of it, twice, on four stores.
        assert!((plan.store_disk_bytes - 12.5).abs() < 1e-9);
        assert!((plan.ingester_disk_bytes - 1800.0).abs() < 1e-9);
        assert!((plan.network_bytes_per_s - 2.25).abs() < 1e-9);
        assert!((plan.catch_up_s - 600.0).abs() < 1e-9);
    }
}
