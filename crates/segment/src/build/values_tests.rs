//! Every value comes back as the value that it was, of lines and beside them, from segments and merges.

use std::collections::BTreeMap;

use logpond_record::{Message, ShapeTable, Value};
use proptest::prelude::*;

use super::tests::{decode, each_row, journals};
use super::*;
use crate::file::{Directory, SegmentWriter};
use crate::mem_disk::MemDisk;
use crate::rows::{Column, ColumnType, FieldCounts, NULL, Rows};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// A field of a row: none, or whether it is of the line, and its value.
type Field = Option<(bool, Value<'static>)>;

/// The fields of a row, by the names.
type Fields = [Field; NAMES.len()];

fn value() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        6 => prop::sample::select(vec![0, 1, 3, 12_345, -7]).prop_map(Value::Int),
        1 => prop::sample::select(vec![1 << 53, (1 << 53) + 1, i64::MAX, i64::MIN]).prop_map(Value::Int),
        3 => prop::sample::select(vec![2.5, 12_345.0, 3.0, -0.0, 0.25]).prop_map(Value::Float),
        1 => prop::sample::select(vec![1.0 / 3.0, 1e300, 9_007_199_254_740_992.0]).prop_map(Value::Float),
        1 => prop::sample::select(vec!["12345", "2.5", "x", ""]).prop_map(|t| Value::Str(t.into())),
        1 => any::<bool>().prop_map(Value::Bool),
    ]
}

fn fields() -> impl Strategy<Value = Fields> {
    [(); NAMES.len()].map(|()| prop::option::weighted(0.8, (any::<bool>(), value())))
}

/// A record of an entry with these fields.
fn record_of<'e>(entry: &Entry<'e>, fields: &Fields, shapes: &mut ShapeTable) -> Record<'e> {
    let mut record = decode(entry);
    let mut shape = String::from("{");
    record.values.clear();
    for (name, field) in NAMES.iter().zip(fields) {
        let Some((is_of_line, value)) = field else {
            continue;
        };
        if !is_of_line {
            record.labels.push(((*name).into(), value.clone()));
            continue;
        }
        let kind = match value {
            // Severities are whole numbers, too.
            Value::Int(number) if number % 2 == 0 => 'v',
            Value::Int(_) => 'i',
            Value::Float(_) => 'f',
            Value::Bool(_) => 'b',
            _ => 't',
        };
        shape.push_str(&format!("⟨{name}:{kind}⟩"));
        record.values.push(value.clone());
    }
    shape.push('}');
    record.shape = shapes.intern(shape.as_bytes()).unwrap();
    record.message = Message::Absent;
    record.whole = Some(entry.raw.into());
    record
}

/// The fields of each row, by its number; checks the segment.
fn fields_of(segment: &SegmentFile) -> BTreeMap<usize, Fields> {
    let mut found = BTreeMap::new();
    each_row(segment, |view, row, number| {
        let record = view.record(row, Id(0));
        let fields = NAMES.map(|name| field_of(&record, name));
        assert_eq!(found.insert(number as usize, fields), None);
    });
    check_counts(&segment.read_directory().unwrap(), found.values());
    found
}

fn field_of(record: &Record<'_>, name: &str) -> Field {
    let slots = record.shape.slots().iter().zip(&record.values);
    let mut slots = slots.filter(|(slot, _)| *slot.name == *name);
    if let Some((_, value)) = slots.next() {
        return Some((true, value.clone().into_owned()));
    }
    let mut labels = record.labels.iter().filter(|(label, _)| label == name);
    let found = labels
        .next()
        .map(|(_, value)| (false, value.clone().into_owned()));
    assert!(labels.next().is_none(), "a label is there once");
    found
}

/// Readers take it for certain that values outside the column are counted as such.
fn check_counts<'f>(directory: &Directory, rows: impl Iterator<Item = &'f Fields>) {
    let rows: Vec<_> = rows.collect();
    for (at, name) in NAMES.iter().enumerate() {
        let Some(column) = directory.schema.column(name) else {
            continue;
        };
        let (kind, count) = (
            directory.schema.columns[column].kind,
            directory.counts.fields[*name],
        );
        let values = || rows.iter().filter_map(|fields| fields[at].as_ref());
        let are_ints = |is_of_line: bool| {
            let is_it = |(of_line, value): &&(bool, Value<'_>)| {
                *of_line == is_of_line && matches!(value, Value::Int(_))
            };
            values().filter(is_it).count() as u64
        };
        assert!(count.label_int >= are_ints(false), "{name}");
        let holds_fractions = matches!(kind, ColumnType::Float | ColumnType::Decimal(_));
        if holds_fractions {
            assert!(count.beside(kind) >= are_ints(false), "{name} {kind:?}");
            assert!(
                count.may_mix(kind) || are_ints(true) == 0,
                "{name} {kind:?}"
            );
        }
    }
}

fn built(disk: &MemDisk, id: u128, files: &[ClosedFile], model: &[Fields]) -> SegmentFile {
    let mut shapes = ShapeTable::new();
    from_journal(disk, Id(id), files, |entry| {
        let number: usize = std::str::from_utf8(entry.raw).unwrap().parse().unwrap();
        record_of(entry, &model[number], &mut shapes)
    })
    .unwrap();
    open(disk, Id(id)).unwrap()
}

/// Writes a segment anew as earlier versions did: no count of whole numbers beside lines.
fn uncounted(
    disk: &MemDisk,
    id: u128,
    segment: &SegmentFile,
    alter: impl Fn(&mut Rows, &mut FieldCounts),
) -> SegmentFile {
    let directory = segment.read_directory().unwrap();
    let mut counts = directory.counts.clone();
    let mut reader = segment.row_group(&directory, 0);
    let mut rows = reader.rows(0).unwrap();
    alter(&mut rows, &mut counts);
    counts
        .fields
        .values_mut()
        .for_each(|count| count.label_int = 0);
    let file = disk.create(&path(Id(id), SUFFIX_LIVE)).unwrap();
    let (schema, sources) = (directory.schema.clone(), segment.manifest().sources.clone());
    let mut writer =
        SegmentWriter::new(file, Id(id), Profile::Hot, counts, schema, sources).unwrap();
    writer.write(&rows).unwrap();
    writer.finish().unwrap();
    open(disk, Id(id)).unwrap()
}

fn model_of(segment: &[Fields]) -> BTreeMap<usize, Fields> {
    segment.iter().cloned().enumerate().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn values_survive_segments_and_merges(
        model in prop::collection::vec(fields(), 3..60),
        cuts in prop::array::uniform2(any::<prop::sample::Index>()),
    ) {
        let mut cuts = cuts.map(|cut| 1 + cut.index(model.len() - 2));
        cuts.sort_unstable();
        let counts = [cuts[0], cuts[1] - cuts[0], model.len() - cuts[1]];
        let counts: Vec<u64> = counts.iter().filter(|c| **c > 0).map(|c| *c as u64).collect();
        let disk = MemDisk::new();
        let files = journals(&disk, &counts);
        let mut inputs = Vec::new();
        let mut all = BTreeMap::new();
        for (number, file) in files.iter().enumerate() {
            let segment = built(&disk, 1 + number as u128, std::slice::from_ref(file), &model);
            all.append(&mut fields_of(&segment));
            inputs.push(segment);
        }
        prop_assert_eq!(&all, &model_of(&model));
        // One after the other, so that merges are merged.
        let mut merged = inputs.remove(0);
        for (number, input) in inputs.into_iter().enumerate() {
            let id = Id(100 + number as u128);
            merge(&disk, id, &[merged, input], Profile::Hot, &|| false).unwrap();
            merged = open(&disk, id).unwrap();
        }
        prop_assert_eq!(&fields_of(&merged), &model_of(&model));
    }
}

fn labels(values: impl IntoIterator<Item = Value<'static>>) -> Vec<Fields> {
    let fields = |value| [Some((false, value)), None, None];
    values.into_iter().map(fields).collect()
}

#[test]
fn most_values_beside_lines_decide_the_column() {
    for (ints, floats, kind) in [(10, 1, ColumnType::Int), (1, 10, ColumnType::Decimal(1))] {
        let values = (0..ints)
            .map(Value::Int)
            .chain((0..floats).map(|_| Value::Float(2.5)));
        let model = labels(values);
        let disk = MemDisk::new();
        let files = journals(&disk, &[model.len() as u64]);
        let segment = built(&disk, 1, &files, &model);
        assert_eq!(fields_of(&segment), model_of(&model));
        let directory = segment.read_directory().unwrap();
        assert_eq!(directory.schema.columns[0].kind, kind);
        let count = directory.counts.fields["a"];
        assert_eq!((count.label_int, count.beside(kind)), (ints as u64, 1));
    }
}

/// Segments of earlier versions do not tell how many whole numbers are beside lines; a merge finds them.
#[test]
fn merges_of_earlier_segments_keep_whole_numbers() {
    let disk = MemDisk::new();
    let model = labels([
        Value::Int(12_345),
        Value::Int(7),
        Value::Float(2.5),
        Value::Float(3.0),
    ]);
    let files = journals(&disk, &[2, 2]);
    let inputs: Vec<_> = (0..2)
        .map(|at| {
            let segment = built(&disk, 1 + at as u128, &files[at..=at], &model);
            uncounted(&disk, 11 + at as u128, &segment, |_, _| {})
        })
        .collect();
    merge(&disk, Id(20), &inputs, Profile::Hot, &|| false).unwrap();
    let merged = open(&disk, Id(20)).unwrap();
    assert_eq!(fields_of(&merged), model_of(&model));
    assert_eq!(
        merged.read_directory().unwrap().counts.fields["a"].label_int,
        2
    );
}

/// Earlier versions had whole numbers beside lines as fractions: these are read as what is there.
#[test]
fn fractions_of_earlier_segments_are_read() {
    let disk = MemDisk::new();
    let model = labels([Value::Int(12_345), Value::Float(2.5), Value::Float(0.25)]);
    let files = journals(&disk, &[3]);
    let segment = built(&disk, 1, &files, &model);
    let earlier = uncounted(&disk, 2, &segment, |rows, _| {
        let Column::Ints(numbers) = &mut rows.fields[0] else {
            panic!("decimals are whole numbers of a unit");
        };
        let at = numbers.valid.iter().position(|is_valid| !is_valid).unwrap();
        numbers.values[at] = 1_234_500;
        numbers.valid.clear();
        rows.more.codes.fill(NULL);
    });
    let expected = model_of(&labels([12_345.0, 2.5, 0.25].map(Value::Float)));
    assert_eq!(fields_of(&earlier), expected);
    merge(&disk, Id(3), &[earlier], Profile::Hot, &|| false).unwrap();
    assert_eq!(fields_of(&open(&disk, Id(3)).unwrap()), expected);
}
