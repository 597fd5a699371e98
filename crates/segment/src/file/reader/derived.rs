//! Templates of messages, the overview and the timeline, which a file derives from its rows.

use std::sync::Arc;

use super::super::directory::Directory;
use super::super::footer::FIELDS_FROM;
use super::super::page::{Dictionary, Physical};
use super::{ReadError, RowGroupReader, SegmentFile, damaged};
use crate::overview::{OVERVIEW_BYTES_MAX, Overview};
use crate::rows::{Column, StringColumn, Strings};
use crate::timeline::{TIMELINE_BYTES_MAX, Timeline};

impl SegmentFile {
    /// Reads what the segment holds; `None` if its file does not say.
    ///
    /// # Errors
    /// When the overview is damaged or the disk fails.
    pub fn overview(&self, directory: &Directory) -> Result<Option<Overview>, ReadError> {
        let Some(place) = directory.overview else {
            return Ok(None);
        };
        let wrong = |what| damaged(place.offset, place.bytes as u64, what);
        let plain = self.unpack(
            place,
            OVERVIEW_BYTES_MAX,
            [
                "the overview has a wrong checksum",
                "the overview is too large",
                "the overview does not decompress",
            ],
        )?;
        let overview = Overview::decode(&plain).map_err(|_| wrong("the overview is malformed"))?;
        Ok(Some(overview))
    }

    /// Reads when the records of the segment are; `None` if its file does not say.
    ///
    /// # Errors
    /// When the timeline is damaged or the disk fails.
    pub fn timeline(&self, directory: &Directory) -> Result<Option<Timeline>, ReadError> {
        let Some(place) = directory.timeline else {
            return Ok(None);
        };
        let wrong = |what| damaged(place.offset, place.bytes as u64, what);
        let plain = self.unpack(
            place,
            TIMELINE_BYTES_MAX,
            [
                "the timeline has a wrong checksum",
                "the timeline is too large",
                "the timeline does not decompress",
            ],
        )?;
        let timeline = Timeline::decode(&plain).map_err(|_| wrong("the timeline is malformed"))?;
        Ok(Some(timeline))
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
