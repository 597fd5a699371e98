use super::*;

#[test]
fn progress_has_rate_and_share() {
    let text = progress_text(12_345, 4_000, 0.456, Duration::from_secs(10));
    assert_eq!(text, "12,345 records · 400 records/s · 46 % of the range");
}

#[test]
fn an_import_is_complete_with_all_that_the_source_counts() {
    let totals = |rejected, counted| Totals {
        read: 5,
        accepted: 5 - rejected,
        rejected,
        counted,
        ..Totals::default()
    };
    assert!(totals(0, Some(5)).is_complete());
    assert!(
        totals(0, Some(4)).is_complete(),
        "records expired meanwhile"
    );
    assert!(totals(0, None).is_complete());
    assert!(!totals(0, Some(6)).is_complete());
    assert!(!totals(1, Some(5)).is_complete());
}

#[test]
fn imports_have_files_of_their_own() {
    assert_ne!(
        state_name("http://a since=1h"),
        state_name("http://a since=2h")
    );
    assert!(state_name("x").ends_with(".json"));
}
