//! Templates of messages, and the summaries that a file derives from its rows.

use std::sync::Arc;

use super::super::directory::{Directory, Place};
use super::super::footer::FIELDS_FROM;
use super::super::page::{Dictionary, Physical};
use super::{ReadError, RowGroupReader, SegmentFile, damaged};
use crate::overview::{OVERVIEW_BYTES_MAX, Overview};
use crate::patterns::{PATTERNS_BYTES_MAX, PatternTable};
use crate::rows::{Column, StringColumn, Strings};
use crate::timeline::{TIMELINE_BYTES_MAX, Timeline};
use crate::wire::DecodeError;

impl SegmentFile {
    /// Reads what the segment holds; `None` if its file does not say.
    ///
    /// # Errors
    /// When the overview is damaged or the disk fails.
    pub fn overview(&self, directory: &Directory) -> Result<Option<Overview>, ReadError> {
        let reasons = [
            "the overview has a wrong checksum",
            "the overview is too large",
            "the overview does not decompress",
            "the overview is malformed",
        ];
        let place = directory.overview;
        self.summary(place, OVERVIEW_BYTES_MAX, reasons, Overview::decode)
    }

    /// Reads when the records of the segment are; `None` if its file does not say.
    ///
    /// # Errors
    /// When the timeline is damaged or the disk fails.
    pub fn timeline(&self, directory: &Directory) -> Result<Option<Timeline>, ReadError> {
        let reasons = [
            "the timeline has a wrong checksum",
            "the timeline is too large",
            "the timeline does not decompress",
            "the timeline is malformed",
        ];
        let place = directory.timeline;
        self.summary(place, TIMELINE_BYTES_MAX, reasons, Timeline::decode)
    }

    /// Reads which patterns the messages of the segment have; `None` if its file does not say.
    ///
    /// # Errors
    /// When the table is damaged or the disk fails.
    pub fn patterns(&self, directory: &Directory) -> Result<Option<PatternTable>, ReadError> {
        let reasons = [
            "the table of patterns has a wrong checksum",
            "the table of patterns is too large",
            "the table of patterns does not decompress",
            "the table of patterns is malformed",
        ];
        let place = directory.patterns;
        self.summary(place, PATTERNS_BYTES_MAX, reasons, PatternTable::decode)
    }

    /// Reads a summary of the rows, if there is one. The first texts are those of `unpack`, the last one says
    /// that it does not decode.
    fn summary<T>(
        &self,
        place: Option<Place>,
        plain_bytes_max: usize,
        [checksum, size, packing, malformed]: [&'static str; 4],
        decode: impl FnOnce(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, ReadError> {
        let Some(place) = place else {
            return Ok(None);
        };
        let plain = self.unpack(place, plain_bytes_max, [checksum, size, packing])?;
        let wrong = |_| damaged(place.offset, place.bytes as u64, malformed);
        decode(&plain).map(Some).map_err(wrong)
    }
}

impl RowGroupReader<'_> {
    /// The place of the column of templates; `None` if no row of the row group has one.
    fn template_column(&self) -> Option<usize> {
        let number = FIELDS_FROM + self.directory.schema.columns.len();
        let column = self.group.columns.get(number)?;
        column.dictionary.is_some().then_some(number)
    }

    /// The templates of the row group; `None` if it has none.
    ///
    /// # Errors
    /// When the page is damaged or the disk fails.
    pub fn template_texts(&mut self) -> Result<Option<Arc<Strings>>, ReadError> {
        let Some(number) = self.template_column() else {
            return Ok(None);
        };
        self.load_dictionary(number, Physical::Strings)?;
        Ok(match &self.dictionaries[number] {
            Some(Dictionary::Strings(strings)) => Some(Arc::clone(strings)),
            _ => None,
        })
    }

    /// The templates of a block's messages; rows without one have none.
    ///
    /// # Errors
    /// As for [`RowGroupReader::template_texts`].
    pub fn templates(&mut self, block: usize) -> Result<StringColumn, ReadError> {
        let column = match self.template_column() {
            Some(number) => self.column(number, Physical::Strings, true, block)?,
            None => Column::Absent,
        };
        Ok(self.strings(column, block))
    }
}
