use super::starts;

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
        "26/11/27 ",
        "2026/11/27 ",
        "ERRO[0012]",
        "ERROR:root:",
        "fail: a[0]",
        "E/Tag(",
        "[ 11-27 ",
        "[error] 2026-",
        "[Nest] ",
        "L 11/27",
        "AUDIT, 2",
        "Nov 27, 2026",
        "<Nov 27",
        "<W>2026-",
        "E. 2026-",
        "(3) Nov27",
        "00000100:00020000:",
        "lxc web ",
        "warn\t2026",
        "   1.234 ",
        "[1795740685] ",
        "11-27-2026 00:51",
        "Fri, 27 Nov",
        "12(77) ",
        "77: : INFO",
        "JVB 2026-",
        "6b3c8e0f-7d1a-4c55-9a01-0123456789ab 2026-",
        "https://shop.example|1795740685|",
        "[E 261127 ",
        "Fri Nov 27 00:51:25 2026 [",
        "20261127 00:51:25 ",
    ] {
        let (_, group) = starts::candidates(line.as_bytes()).unwrap_or_else(|| panic!("{line}"));
        assert!((1..=starts::ROWS_MAX).contains(&group.count()));
    }
}
