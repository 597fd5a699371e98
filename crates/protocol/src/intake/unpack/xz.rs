//! Streams of xz, in steps.
//!
//! A stream says in its head which dictionary its decoder needs, and at most the end of what it
//! decompresses to is ever in there. `systemd-journal-upload` packs what it reads at a time (64 KiB)
//! into a stream of its own, but says what its level says: 64 MiB at level 9. So memory is bounded by
//! what streams fill of their dictionaries, not by what they say: a large one is allocated, which costs
//! nothing before it is written to, and the stream has to be short then.

use xz4rust::{XzDecoder, XzError};

use super::super::body::{BodyError, Encoding};
use super::{XZ_DICTIONARY_BYTES_MAX, XZ_DICTIONARY_CLAIM_BYTES_MAX};

/// The output of a step.
const STEP_BYTES: usize = 64 << 10;

/// What may come of a stream before anything comes out of it: heads of the stream and of a block, and
/// the begin of what is compressed. With more than that, it is read with a small dictionary or not at all.
const HEAD_BYTES_MAX: usize = 4 << 10;

pub(super) struct XzUnpacker {
    decoder: Box<XzDecoder<'static>>,
    /// What came of a stream of which nothing came out yet, to be read again.
    head: Vec<u8>,
    /// What came out of the stream.
    stream_bytes: usize,
    /// The dictionary that was asked for, if it is a large one: then all streams are short.
    claimed_bytes: Option<u64>,
    /// Whether the last stream is complete.
    pub(super) is_complete: bool,
    /// Whether there may be more output without input.
    pub(super) is_pending: bool,
}

/// What a step did.
struct Step {
    taken: usize,
    given: usize,
    is_end: bool,
}

impl XzUnpacker {
    pub(super) fn new() -> XzUnpacker {
        XzUnpacker {
            decoder: decoder(XZ_DICTIONARY_BYTES_MAX),
            head: Vec::new(),
            stream_bytes: 0,
            claimed_bytes: None,
            is_complete: true,
            is_pending: false,
        }
    }

    /// As [`super::Unpacker::step`].
    pub(super) fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, BodyError> {
        if input.is_empty() && !self.is_pending {
            return Ok(0);
        }
        out.resize(STEP_BYTES, 0);
        let step = match self.decode(input, out) {
            Err(XzError::DictionaryTooLarge(bytes)) => {
                self.enlarge(bytes)?;
                self.decode(input, out)
            }
            step => step,
        };
        let step = step.map_err(|_| CORRUPT)?;
        if step.taken == 0 && step.given == 0 && !input.is_empty() {
            return Err(CORRUPT);
        }
        out.truncate(step.given);
        self.is_pending = step.given == STEP_BYTES;
        self.note(&input[..step.taken], &step)?;
        Ok(step.taken)
    }

    fn decode(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, XzError> {
        match self.decoder.decode(input, out) {
            Ok(result) => Ok(Step {
                taken: result.input_consumed(),
                given: result.output_produced(),
                is_end: result.is_end_of_stream(),
            }),
            // There was no more output.
            Err(XzError::NeedsLargerInputBuffer) if input.is_empty() => Ok(Step {
                taken: 0,
                given: 0,
                is_end: false,
            }),
            Err(error) => Err(error),
        }
    }

    /// Reads the head of the stream again, with room for its dictionary.
    fn enlarge(&mut self, bytes: u64) -> Result<(), BodyError> {
        let is_known = self.stream_bytes == 0 && self.head.len() < HEAD_BYTES_MAX;
        if bytes > XZ_DICTIONARY_CLAIM_BYTES_MAX as u64 || !is_known {
            return Err(BodyError::Dictionary(bytes));
        }
        self.claimed_bytes = Some(bytes);
        self.decoder = decoder(XZ_DICTIONARY_CLAIM_BYTES_MAX);
        let head = std::mem::take(&mut self.head);
        if head.is_empty() {
            return Ok(());
        }
        let again = self.decode(&head, &mut [0; 1]).map_err(|_| CORRUPT)?;
        match (again.taken == head.len(), again.given) {
            (true, 0) => Ok(()),
            _ => Err(CORRUPT),
        }
    }

    /// Counts a step; the next stream begins where one ends.
    fn note(&mut self, taken: &[u8], step: &Step) -> Result<(), BodyError> {
        self.stream_bytes += step.given;
        if let Some(bytes) = self.claimed_bytes
            && self.stream_bytes > XZ_DICTIONARY_BYTES_MAX
        {
            return Err(BodyError::Dictionary(bytes));
        }
        if self.stream_bytes == 0 && self.head.len() < HEAD_BYTES_MAX {
            let room = HEAD_BYTES_MAX - self.head.len();
            self.head.extend_from_slice(&taken[..taken.len().min(room)]);
        }
        self.is_complete = step.is_end || (self.is_complete && taken.is_empty());
        if step.is_end {
            self.decoder.reset();
            self.head.clear();
            self.stream_bytes = 0;
            self.is_pending = false;
        }
        Ok(())
    }
}

const CORRUPT: BodyError = BodyError::Corrupt(Encoding::Xz);

fn decoder(dictionary_bytes_max: usize) -> Box<XzDecoder<'static>> {
    Box::new(XzDecoder::with_alloc_dict_size(0, dictionary_bytes_max))
}
