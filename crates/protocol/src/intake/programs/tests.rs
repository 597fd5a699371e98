use super::rows;

#[test]
fn rows_compile() {
    // The groups are compiled when one of them is asked for.
    for line in [
        "2026-11-27 ",
        "[2026-11-27",
        "[Fri Nov",
        "[INFO] x",
        "1:M 27",
        "I1127 ",
    ] {
        let (_, group) = rows::candidates(line.as_bytes()).unwrap_or_else(|| panic!("{line}"));
        assert!(group.rows().count() > 0);
    }
}
