use super::*;
use story::{BAD_RELEASE, GOOD_RELEASE};

const NOW: i64 = 1_772_450_000;

/// The lines of a source in these seconds.
fn text(day: &Day, source: &Source, seconds: std::ops::Range<i64>) -> (u64, String) {
    let mut out = Vec::new();
    let counts = seconds.map(|second| day.write(source, second, &mut out));
    let count = counts.sum();
    (count, String::from_utf8(out).expect("text"))
}

#[test]
fn the_same_seed_and_time_make_the_same_day() {
    for source in &SOURCES {
        let hour = NOW - 3600..NOW;
        let first = text(&Day::new(1, NOW), source, hour.clone());
        assert_eq!(first, text(&Day::new(1, NOW), source, hour.clone()));
        assert_ne!(first, text(&Day::new(2, NOW), source, hour));
    }
}

#[test]
fn every_source_writes_as_many_records_as_it_says() {
    let day = Day::new(1, NOW);
    let mut all = 0;
    for source in &SOURCES {
        let (count, text) = text(&day, source, day.seconds());
        let records = match source.content_type {
            "application/vnd.fdo.journal" => text.matches("\n\n").count(),
            _ => text.lines().count(),
        };
        assert_eq!(records as u64, count, "{}", source.name);
        assert!(count > 5000, "{}: {count}", source.name);
        all += count;
    }
    assert!((150_000..400_000).contains(&all), "{all}");
}

#[test]
fn the_incident_is_within_the_day_and_only_there() {
    let day = Day::new(1, NOW);
    let incident = &day.incident;
    let (begin, end) = (incident.deployed, incident.rolled_back);
    assert!(day.seconds().contains(&begin) && day.seconds().contains(&end));
    let services = SOURCES.iter().find(|s| s.name == "services").unwrap();
    let failures = |seconds| {
        text(&day, services, seconds)
            .1
            .matches("is exhausted")
            .count()
    };
    assert_eq!(failures(begin - 7200..incident.failing), 0);
    assert!(failures(incident.failing..end) > 500);
    assert_eq!(failures(end..NOW + 600), 0);
    let journal = SOURCES.iter().find(|s| s.name == "journal").unwrap();
    let (_, entries) = text(&day, journal, day.seconds());
    let releases: Vec<&str> = entries
        .lines()
        .filter(|l| l.contains("rolled out"))
        .collect();
    assert_eq!(releases.len(), 2, "{releases:?}");
    assert!(releases[0].contains(BAD_RELEASE) && releases[1].contains(GOOD_RELEASE));
}

#[test]
fn live_lines_go_on_where_the_day_ends() {
    let (earlier, later) = (Day::new(1, NOW), Day::new(1, NOW + 30));
    let access = &SOURCES[0];
    // Both stories begin at the same minute, so the seconds that both have are the same.
    assert_eq!(earlier.incident.deployed, later.incident.deployed);
    let shared = later.seconds().start..NOW + 60;
    assert_eq!(
        text(&earlier, access, shared.clone()),
        text(&later, access, shared)
    );
}
