//! What is derived from rows may be damaged: all rows are found all the same, and the damage is named.

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
