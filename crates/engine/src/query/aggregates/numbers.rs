//! Numbers of lines, for LogQL.

use std::any::Any;
use std::sync::Arc;

use logpond_record::{Record, Timestamp};
use logpond_search::metric::{KeptNumbers, Leaf, LeafSpec, RangeTable};
use logpond_search::scan::{GroupScan, SelectedRows};
use logpond_segment::file::ReadError;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::{AnyTable, Part, Table};

pub(super) fn read(from: &mut Decoder<'_>) -> Result<Box<dyn AnyTable>, DecodeError> {
    match Leaf::new(LeafSpec::decode(from)?) {
        Ok(leaf) => Ok(Box::new(RangeTable::new(Arc::new(leaf)))),
        Err(_) => Err(DecodeError::Malformed("a table of numbers")),
    }
}

impl Table for RangeTable {
    fn add(&mut self, record: &Record<'_>) {
        RangeTable::add(self, record);
    }

    fn add_block(
        &mut self,
        scan: &mut GroupScan<'_>,
        selected: &SelectedRows,
    ) -> Result<(), ReadError> {
        RangeTable::add_block(self, scan, selected)
    }

    fn end_group(&mut self) {
        RangeTable::end_group(self);
    }

    fn merge(&mut self, other: RangeTable) {
        RangeTable::merge(self, other);
    }

    fn bytes(&self) -> usize {
        RangeTable::bytes(self)
    }

    fn question(&self, from: Timestamp, to: Timestamp) -> Option<Vec<u8>> {
        RangeTable::question(self, from, to)
    }

    fn into_part(self, from: Timestamp) -> Result<(Part, usize), Box<RangeTable>> {
        let kept = self.keep(from)?;
        let bytes = kept.bytes();
        Ok((Arc::new(kept), bytes))
    }

    fn add_part(&mut self, part: &(dyn Any + Send + Sync)) {
        if let Some(kept) = part.downcast_ref::<KeptNumbers>() {
            self.add_kept(kept);
        }
    }

    fn ask(&self, out: &mut Encoder) {
        out.number(6);
        self.leaf().spec().encode(out);
    }

    fn encode(&self, out: &mut Encoder) {
        RangeTable::encode(self, out);
    }

    fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        RangeTable::merge_encoded(self, from)
    }
}
