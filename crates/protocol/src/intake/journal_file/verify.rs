//! Checks that a journal file is what its writer wrote, beyond what reading its entries tells.
//!
//! Every object is looked at, whether entries need it or not: data and names against their hashes, and the
//! tables by which journalctl finds them. Not checked are the lists of the entries that have some data, and
//! seals (tags), which take a key.

use std::io;

use super::object::{self, Kind, Object};
use super::{Damage, JournalFile, Source, Trouble, damage};

/// Where objects have their hash, and the next object of the same list.
const HASH_AT: u64 = 16;
const NEXT_AT: u64 = 24;

/// Bytes of a list in a table: where its first and its last object are.
const LIST_BYTES: u64 = 16;

/// A table of lists by hash.
#[derive(Clone, Copy)]
struct Table {
    kind: Kind,
    /// Where the header says where it is, and how long.
    at: u64,
    /// How many objects of the kind there are.
    objects: u64,
}

/// How many objects there are.
#[derive(Clone, Copy, Default)]
struct Counts {
    all: u64,
    data: u64,
    fields: u64,
    entries: u64,
}

impl<S: Source> JournalFile<S> {
    /// Looks at all objects; tells of each place that is not as it was written, unless reading told of it.
    ///
    /// # Errors
    /// What the system says when it does not give the bytes.
    pub fn verify(&mut self, report: &mut dyn FnMut(Damage)) -> io::Result<()> {
        let mut told = |outcome: Result<(), Trouble>| match outcome {
            Ok(()) => Ok(true),
            Err(Trouble::Damage(damage)) => {
                report(damage);
                Ok(false)
            }
            Err(Trouble::Read(error)) => Err(error),
        };
        let mut counts = Counts::default();
        let mut offset = self.header.bytes;
        while offset != 0 {
            let before = offset;
            let outcome = self.verify_object(&mut offset, &mut counts);
            if !told(outcome)? && offset == before {
                // Without the length of an object the next one is not found; tables would lack them all.
                return Ok(());
            }
        }
        told(self.verify_counts(counts))?;
        let tables = [
            (Kind::Data, 104, counts.data),
            (Kind::Field, 120, counts.fields),
        ];
        for (kind, at, objects) in tables {
            told(self.verify_table(Table { kind, at, objects }))?;
        }
        Ok(())
    }

    /// Checks the object at an offset, which becomes that of the next one; 0 behind the last.
    fn verify_object(&mut self, offset: &mut u64, counts: &mut Counts) -> Result<(), Trouble> {
        let at = *offset;
        if at > self.header.tail_object || at >= self.pages.length() {
            *offset = 0;
            return match self.header.tail_object {
                0 => Ok(()),
                tail => damage(tail, "the last object is not where the header says"),
            };
        }
        let object = Object::read(&mut self.pages, &self.header, at)?;
        *offset = if at == self.header.tail_object {
            0
        } else {
            object.end()
        };
        counts.all += 1;
        match object.kind {
            Kind::Data => counts.data += 1,
            Kind::Field => counts.fields += 1,
            Kind::Entry => counts.entries += 1,
            Kind::EntryArray | Kind::Other => {}
        }
        let head = match object.kind {
            Kind::Data => self.header.data_head_bytes(),
            Kind::Field => object::FIELD_HEAD_BYTES,
            _ => return Ok(()),
        };
        self.held.clear();
        // What is longer than an entry may be is not taken, and no entry has it.
        if self.read_payload(&object, head)?.is_ok()
            && let Some(doubt) = self.doubt(at, 0)?
        {
            return Err(Trouble::Damage(doubt));
        }
        Ok(())
    }

    /// Compares what was counted with the header; while a file is written that may be behind.
    fn verify_counts(&mut self, counts: Counts) -> Result<(), Trouble> {
        let said = (self.header.objects, self.header.entries);
        if !self.header.is_closed || (counts.all, counts.entries) == said {
            Ok(())
        } else {
            damage(0, "the header counts other objects than there are")
        }
    }

    /// Follows all lists of a table.
    fn verify_table(&mut self, table: Table) -> Result<(), Trouble> {
        let (from, bytes) = (self.pages.u64(table.at)?, self.pages.u64(table.at + 8)?);
        let lists = bytes / LIST_BYTES;
        if from == 0 || lists == 0 {
            return match table.objects {
                0 => Ok(()),
                _ => damage(table.at, "there is no table of hashes"),
            };
        }
        let mut found = 0;
        for list in 0..lists {
            found += self.verify_list(table.kind, from + list * LIST_BYTES, (list, lists))?;
        }
        if found == table.objects {
            Ok(())
        } else {
            damage(from, "a table of hashes lacks objects")
        }
    }

    /// Follows one list; gives how many objects are in it. It ends since its offsets grow.
    fn verify_list(
        &mut self,
        kind: Kind,
        at: u64,
        (list, lists): (u64, u64),
    ) -> Result<u64, Trouble> {
        let (mut next, tail) = (self.pages.u64(at)?, self.pages.u64(at + 8)?);
        let (mut last, mut found) = (0, 0);
        while next != 0 {
            if next <= last {
                return damage(last, "a list of objects with one hash points back");
            }
            let object = Object::read(&mut self.pages, &self.header, next)?;
            if object.kind != kind || self.pages.u64(next + HASH_AT)? % lists != list {
                return damage(next, "an object is in the list of another hash");
            }
            (last, next) = (next, self.pages.u64(next + NEXT_AT)?);
            found += 1;
        }
        if last == tail {
            Ok(found)
        } else {
            damage(
                at,
                "a list of objects with one hash does not end where it says",
            )
        }
    }

    /// What is wrong with an object whose payload is in `held` from a place on, if its hash says so and that
    /// was not told.
    pub(super) fn doubt(&mut self, offset: u64, from: usize) -> Result<Option<Damage>, Trouble> {
        let said = self.pages.u64(offset + HASH_AT)?;
        if self.header.hasher.hash(&self.held[from..]) == said {
            return Ok(None);
        }
        let is_new = self.doubted.len() < super::DOUBTED_MAX && self.doubted.insert(offset);
        Ok(is_new.then_some(Damage {
            offset,
            what: "what is there is not what its hash says",
        }))
    }
}
