use std::time::Duration;

use super::*;

#[test]
fn values_fall_into_the_smallest_bucket_that_holds_them() {
    let histogram = Histogram::new((0, 3));
    for value in [0, 1, 2, 3, 4, 5, 8, 9, u64::MAX / 2] {
        histogram.observe(value);
    }
    let buckets: Vec<_> = histogram.cumulative().collect();
    assert_eq!(buckets, [(1, 2), (2, 3), (4, 5), (8, 7)]);
    assert_eq!(histogram.count(), 9);
}

#[test]
fn the_exposition_is_well_formed() {
    let metrics = Metrics::default();
    metrics.intake(Intake::Durable).records.add(3);
    metrics.sync_ns.observe_duration(Duration::from_millis(2));
    metrics.register(Box::new(|out| {
        out.family("extra", "gauge", "x");
        out.sample("extra", &[], 1.5);
    }));
    let text = metrics.expose();
    assert!(text.contains("logpond_ingest_records_total{intake=\"durable\"} 3\n"));
    assert!(text.contains("logpond_journal_sync_seconds_bucket{le=\"+Inf\"} 1\n"));
    assert!(text.contains("\nextra 1.5\n"));
    let mut families = std::collections::HashSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert!(
                families.insert(rest.split(' ').next().unwrap()),
                "twice: {line}"
            );
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            value.parse::<f64>().unwrap();
            let name = name.split('{').next().unwrap();
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|s| name.strip_suffix(s).filter(|f| families.contains(f)));
            assert!(families.contains(family.unwrap_or(name)), "{line}");
        }
    }
}

#[test]
fn kernel_drops_are_found_by_port() {
    let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
        12: 0100007F:158A 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1 2 0000 17\n\
        13: 0100007F:158B 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1 2 0000 5\n";
    let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
    assert_eq!(process::drops_of(table, address(0x158A)), Some(17));
    assert_eq!(process::drops_of(table, address(1)), Some(0));
}

use std::net::SocketAddr;
