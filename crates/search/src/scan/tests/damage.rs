//! Damaged parts of a row group. If they are derived from rows, all rows are found all the same, and the damage is
//! named; if they are rows' own, those rows are missing, and the damaged part is read once.

use logpond_segment::file::Directory;

use super::templated::templated;
use super::*;

/// Words, parts of words, ids, what is in no row, and what depends on the line's beginning.
const QUERIES: [&str; 10] = [
    "error",
    "rro",
    "\"r7\"",
    "are1",
    "facad",
    "nowhere",
    "not rro",
    "rro app=error",
    "/err|bad/",
    "_msg:ror",
];

/// The places of a file's derived parts, with what they are.
fn derived_parts(directory: &Directory) -> Vec<(&'static str, u64)> {
    let mut parts = Vec::new();
    for list in &directory.words {
        parts.push(("words", list.offset + u64::from(list.bytes / 2)));
    }
    let group = &directory.row_groups[0];
    parts.push(("tokens", group.tokens.offset));
    let last = u64::from(group.tokens.bytes) - 1;
    parts.push(("tokens", group.tokens.offset + last));
    // Behind the fixed columns and those of fields.
    let templates = &group.columns[12 + directory.schema.columns.len()];
    let dictionary = templates.dictionary.iter().map(|page| ("texts", page));
    let pages = templates.pages.iter().map(|page| ("templates", page));
    for (what, page) in dictionary.chain(pages) {
        parts.push((what, page.offset + u64::from(page.bytes) - 1));
    }
    parts
}

#[test]
fn rows_beside_damaged_derived_parts_are_found() {
    let records = templated(5, 500);
    let file = file_of_blocks(&records, 1, 700);
    let segment = SegmentFile::open(Arc::new(file.clone())).unwrap();
    let directory = segment.read_directory().unwrap();
    let mut named = Vec::new();
    for (what, at) in derived_parts(&directory) {
        file.0.lock().unwrap()[at as usize] ^= 1;
        for query in QUERIES {
            let filter = parse(query).unwrap();
            let matcher = Matcher::new(&filter).unwrap();
            let mut scratch = Scratch::new();
            let wanted = records.iter().filter(|r| matcher.matches(r, &mut scratch));
            let evaluator = Evaluator::new(&filter, TimeRange::ALL).unwrap();
            let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
            let mut scan = GroupScan::new(&shared, 0);
            let mut found = 0;
            scan.for_each_block(|_, selected| {
                found += selected.rows.len();
                Ok(true)
            })
            .unwrap();
            assert_eq!(found, wanted.count(), "{query} with damaged {what}");
            if !scan.damages().is_empty() {
                named.push(what);
            }
        }
        file.0.lock().unwrap()[at as usize] ^= 1;
    }
    for what in ["words", "tokens", "texts", "templates"] {
        assert!(named.contains(&what), "{what}: no query reads it");
    }
}

#[test]
fn a_damaged_page_is_read_once_for_all_rows_of_its_block() {
    let records = templated(5, 500);
    let file = file_of_blocks(&records, 1, 700);
    let segment = SegmentFile::open(Arc::new(file.clone())).unwrap();
    let directory = segment.read_directory().unwrap();
    let evaluator = Evaluator::new(&parse("").unwrap(), TimeRange::ALL).unwrap();
    let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
    let mut pages_with_records = 0;
    for page in directory.row_groups[0]
        .columns
        .iter()
        .flat_map(|c| &c.pages)
    {
        let at = (page.offset + u64::from(page.bytes) - 1) as usize;
        file.0.lock().unwrap()[at] ^= 1;
        let mut scan = GroupScan::new(&shared, 0);
        let mut keys = Vec::new();
        let visited = scan.for_each_block(|scan, selected| {
            scan.keys(&selected, &mut keys)?;
            Ok(true)
        });
        visited.unwrap();
        let before = scan.bytes_read();
        let mut unread = 0;
        for at in 0..keys.len() {
            unread += u64::from(scan.record(keys[at], |_| ()).unwrap().is_none());
            if at == keys.len() / 2 {
                scan.forget();
            }
        }
        if unread > 0 {
            pages_with_records += 1;
            assert_eq!(scan.damages().len(), 1, "{:?}", scan.damages());
            // Once, and once more what was forgotten.
            let most = 2 * file.0.lock().unwrap().len() as u64;
            assert!(scan.bytes_read() - before < most, "{unread} rows");
        }
        file.0.lock().unwrap()[at] ^= 1;
    }
    assert!(pages_with_records > 1, "{pages_with_records}");
}
