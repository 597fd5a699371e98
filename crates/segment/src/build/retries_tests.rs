//! Batches that were sent again count once, whatever is merged in whatever order.

use std::sync::Arc;

use logpond_record::{Batch, EntryKind, Incarnation, SourceId, Timestamp};
use proptest::prelude::*;

use super::tests::decode;
use super::*;
use crate::batches::{BatchId, RetryCopy, yielding};
use crate::compact::{self, Live};
use crate::journal::{self, Writer};
use crate::mem_disk::MemDisk;
use crate::rows::{Plans, RowsView};
use crate::sources::SourceSet;
use crate::verify;

const EPOCH: u128 = 0xfeed;

/// Rows of every batch.
const ROWS: usize = 3;

/// One journal file for each of these: the original batches of an ingester, or one retry.
fn journals(disk: &MemDisk, originals: &[Vec<u64>], retries: &[(u64, usize)]) -> Vec<ClosedFile> {
    disk.create_directory(DIRECTORY).unwrap();
    let mut files = Vec::new();
    let mut attempts = std::collections::BTreeMap::new();
    for (ingester, batches) in originals.iter().enumerate() {
        let mut writer = Writer::new(Arc::new(disk.clone()), journal::Settings::default());
        let mut send = |sequence: u64, attempt| {
            let mut batch = Batch::new(EntryKind::Line, Vec::new());
            (0..ROWS).for_each(|_| batch.push(sequence.to_string().as_bytes()));
            let id = BatchId {
                epoch: EPOCH,
                sequence,
                attempt,
                first_sent: Timestamp(0),
                more: 0,
            };
            let incarnation = Incarnation(5 + ingester as u128);
            let now = Timestamp(1_000_000_000_000);
            writer
                .append_identified(&batch, Some(id), now, || incarnation)
                .unwrap();
        };
        batches.iter().for_each(|sequence| send(*sequence, 0));
        for (sequence, _) in retries
            .iter()
            .filter(|(_, at)| at % originals.len() == ingester)
        {
            let attempt = attempts.entry(*sequence).or_insert(0);
            *attempt += 1;
            send(*sequence, *attempt);
        }
        if writer.close().is_ok() {
            files.extend(writer.visible().snapshot().closed.iter().cloned());
        }
    }
    files
}

/// How many rows of each batch these segments count together, and what they list.
fn counted(segments: &[SegmentFile]) -> (Vec<usize>, SourceSet) {
    let manifests = || segments.iter().map(SegmentFile::manifest);
    let retries = manifests().flat_map(|manifest| manifest.retries());
    let copies: Vec<RetryCopy> = retries
        .filter(|(_, retry)| !retry.is_shadowed)
        .map(|(source, retry)| RetryCopy {
            source,
            id: retry.id,
        })
        .collect();
    let excluded = yielding(&copies, |id| {
        manifests().any(|m| m.batches.contains(id.epoch, id.sequence))
    });
    let mut rows_counted = vec![0; 10];
    for segment in segments {
        assert_eq!(verify::deep(segment).unwrap(), []);
        let directory = segment.read_directory().unwrap();
        let mut plans = Plans::default();
        for (number, group) in directory.row_groups.iter().enumerate() {
            let mut reader = segment.row_group(&directory, number);
            for block in 0..group.blocks.len() {
                let rows = reader.rows(block).unwrap();
                let view = RowsView::new(&rows, &directory.schema, &mut plans);
                for row in 0..rows.len() {
                    let source = segment.manifest().sources[rows.source[row] as usize].source;
                    let mut line = Vec::new();
                    view.write_line(row, &mut line);
                    let sequence: usize = String::from_utf8(line).unwrap().parse().unwrap();
                    rows_counted[sequence] += usize::from(!excluded.contains(source));
                }
            }
        }
    }
    let sources = manifests().flat_map(|m| m.sources.iter().map(|s| s.source));
    (rows_counted, sources.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_batch_counts_once_in_any_order_of_merges(
        // The ingester that took the original of each batch; none if only retries arrived.
        taken in prop::collection::vec(prop::option::of(0usize..3), 1..6),
        retries in prop::collection::vec((0u64..6, 0usize..3), 0..8),
        groups in prop::collection::vec(0usize..4, 20),
        merges in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 1..4), 0..6),
    ) {
        let disk = MemDisk::new();
        let mut originals = vec![Vec::new(); 3];
        for (sequence, ingester) in taken.iter().enumerate() {
            ingester.iter().for_each(|i| originals[*i].push(sequence as u64));
        }
        let retries: Vec<_> =
            retries.into_iter().filter(|(s, _)| (*s as usize) < taken.len()).collect();
        let files = journals(&disk, &originals, &retries);
        let sources: Vec<SourceId> = files.iter().map(|file| file.source).collect();
        let mut expected = vec![0; 10];
        for (sequence, ingester) in taken.iter().enumerate() {
            let is_sent = ingester.is_some() || retries.iter().any(|(s, _)| *s as usize == sequence);
            expected[sequence] = ROWS * usize::from(is_sent);
        }
        let mut parts: Vec<Vec<ClosedFile>> = vec![Vec::new(); 4];
        files.into_iter().enumerate().for_each(|(n, file)| parts[groups[n % 20]].push(file));
        let mut next = 0;
        let mut id = || {
            next += 1;
            Id(next)
        };
        let mut segments = Vec::new();
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let id = id();
            from_journal(&disk, id, part, decode).unwrap();
            segments.push(open(&disk, id).unwrap());
        }
        let all: SourceSet = sources.into_iter().collect();
        prop_assert_eq!(counted(&segments), (expected.clone(), all.clone()));
        for chosen in &merges {
            if segments.is_empty() {
                break;
            }
            let mut inputs = Vec::new();
            for index in chosen {
                if !segments.is_empty() {
                    inputs.push(segments.swap_remove(index.index(segments.len())));
                }
            }
            let id = id();
            merge(&disk, id, &inputs, Profile::Hot, &|| false).unwrap();
            segments.push(open(&disk, id).unwrap());
            prop_assert_eq!(counted(&segments), (expected.clone(), all.clone()));
            // The inputs may still be there when a process ends: the output covers them.
            let lives: Vec<Live> = inputs.iter().chain(segments.last())
                .map(|segment| Live::new(segment.manifest(), segment.bytes()))
                .collect();
            prop_assert_eq!(compact::cover(&lives).len(), 1);
        }
        if let [one] = &segments[..] {
            // In one segment nothing is left to be excluded.
            let rows: u64 = expected.iter().map(|rows| *rows as u64).sum();
            prop_assert_eq!(one.manifest().rows, if merges.is_empty() { one.manifest().rows } else { rows });
        }
    }
}

/// What a trimmed segment had as an original goes on to make copies yield, here and in merges: those
/// who hold it now have all its rows.
#[test]
fn copies_yield_to_what_was_trimmed_off() {
    let disk = MemDisk::new();
    let files = journals(&disk, &[vec![1], vec![2]], &[(1, 1)]);
    let of = |ingester: u128| {
        let of = files
            .iter()
            .filter(move |f| f.source.incarnation.0 == 5 + ingester);
        of.cloned().collect::<Vec<_>>()
    };
    from_journal(&disk, Id(1), &files, decode).unwrap();
    let all = open(&disk, Id(1)).unwrap();
    from_journal(&disk, Id(2), &of(0), decode).unwrap();
    let original = open(&disk, Id(2)).unwrap();
    let out: SourceSet = of(0).iter().map(|file| file.source).collect();
    merge(&disk, Id(3), &[all], Profile::Hot, &|| false).unwrap();
    let merged = open(&disk, Id(3)).unwrap();
    assert_eq!(
        merged.manifest().rows,
        2 * ROWS as u64,
        "the copy has yielded"
    );
    trim(&disk, Id(4), &merged, &out, Profile::Hot, &|| false).unwrap();
    let trimmed = open(&disk, Id(4)).unwrap();
    assert_eq!(trimmed.manifest().rows, ROWS as u64);
    assert_eq!(trimmed.manifest().batches, merged.manifest().batches);
    let mut expected = vec![0; 10];
    (expected[1], expected[2]) = (ROWS, ROWS);
    assert_eq!(counted(&[trimmed, original]).0, expected);
}
