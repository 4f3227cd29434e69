//! Walks the records of one or several files, read alternately: `perf record --threads` writes a folder with a file
//! for each thread that wrote. Expands COMPRESSED records (`perf record -z`), pieces of one zstd stream (RFC 8878)
//! of records.
//!
//! perf flushes the stream after every ring buffer and never ends it (util/zstd.c), so blocks are
//! decoded as soon as they are complete, and the frame is ended here. A few kilobytes of zstd can
//! expand to gigabytes: expansion is limited, and records are passed on piece by piece. The decoder
//! holds back the last window of the stream, so the last records follow only at the end of the file;
//! that changes the order only of records without a time.

use super::features::{half, word};
use super::header::Broken;
use super::records::{Damage, Records, user};
use crate::input::Input;
use crate::recording::{Replay, Take};
use pmu::records::kind::USER_TYPE_START;
use pmu::records::raw::{Header, Header as RawRecord};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::Read as _;
use std::ops::Range;
use tma::Error;

/// Bytes read of a file before switching to another.
const CHUNK: u64 = 64 << 10;

/// Where records lie.
#[derive(Debug)]
pub(super) struct Part {
    pub input: Input,
    pub range: Range<u64>,
    /// Name in messages.
    pub name: String,
}

/// The records of a recording.
#[derive(Debug)]
pub(super) struct Files {
    pub parts: Vec<Part>,
    /// Where each ends early, as found when it was opened.
    pub damage: Vec<Option<Damage>>,
    pub source: String,
}

impl Replay for Files {
    fn replay(&self, take: Take<'_>) -> tma::Result<()> {
        let found = self.walk(take, &mut |_| {});
        if found == self.damage {
            return Ok(());
        }
        let why = found.into_iter().flatten().next();
        Err(Error::failed(format!("cannot read {} again", self.source))
            .because(why.map_or("it has changed".to_owned(), |damage| damage.to_string())))
    }
}

impl Files {
    /// Reads all records up to the first damage of each file; `other` takes those of perf itself. The file least far in
    /// time is read next, so that few records wait for those of other files.
    pub fn walk(
        &self,
        take: Take<'_>,
        other: &mut dyn FnMut(&RawRecord<'_>),
    ) -> Vec<Option<Damage>> {
        let mut walks: Vec<Walk<'_>> = self.parts.iter().map(Walk::new).collect();
        loop {
            let going = walks.iter_mut().filter(|walk| !walk.has_ended);
            let Some(next) = going.min_by_key(|walk| walk.rounds.now) else { break };
            next.read_chunk(take, other);
        }
        walks.into_iter().map(|walk| walk.outcome.err()).collect()
    }
}

/// A walk through the records of a file.
struct Walk<'a> {
    records: Records<'a>,
    expander: Expander,
    rounds: Rounds,
    /// Offset of the last record.
    last: u64,
    outcome: Result<(), Damage>,
    has_ended: bool,
}

impl<'a> Walk<'a> {
    fn new(part: &'a Part) -> Self {
        Self {
            records: Records::new(&part.input, part.range.clone()),
            expander: Expander::new(),
            rounds: Rounds::default(),
            last: 0,
            outcome: Ok(()),
            has_ended: false,
        }
    }

    /// Reads [`CHUNK`] bytes, or to the end.
    fn read_chunk(&mut self, take: Take<'_>, other: &mut dyn FnMut(&RawRecord<'_>)) {
        let mut first = None;
        while let Some(next) = self.records.next() {
            let (rounds, expander) = (&mut self.rounds, &mut self.expander);
            self.outcome = next.and_then(|(at, record)| {
                self.last = at;
                let taken = rounds.take(&record, expander, take, other);
                taken.map_err(|why| Damage { at, why })
            });
            if self.outcome.is_err() {
                break;
            }
            if self.last - *first.get_or_insert(self.last) >= CHUNK {
                return;
            }
        }
        self.has_ended = true;
        let rest = self.expander.finish(&mut |record| self.rounds.of_kernel(record, take));
        let rest = rest.map_err(|why| Damage { at: self.last, why });
        self.outcome = std::mem::replace(&mut self.outcome, Ok(())).and(rest);
    }
}

/// perf reads all ring buffers in rounds: no record is older than any record of the last round but one
/// (perf's util/ordered-events.c and the comment on `process_finished_round`). So a record without a
/// time is placed after the records of that round, and before later ones.
#[derive(Default)]
struct Rounds {
    /// Latest time up to the last round but one, up to the last, and up to now.
    before_last: u64,
    last: u64,
    now: u64,
}

impl Rounds {
    fn take(
        &mut self,
        record: &RawRecord<'_>,
        expander: &mut Expander,
        take: Take<'_>,
        other: &mut dyn FnMut(&RawRecord<'_>),
    ) -> Result<(), Broken> {
        let sized = record.kind == user::COMPRESSED2;
        match record.kind {
            user::COMPRESSED | user::COMPRESSED2 => {
                let mut each = |record: &RawRecord<'_>| self.of_kernel(record, take);
                return expander.add(record.body, sized, &mut each);
            }
            user::FINISHED_ROUND => self.finish(),
            kind if kind < USER_TYPE_START => self.of_kernel(record, take),
            _ => other(record),
        }
        Ok(())
    }

    /// A record of the kernel.
    fn of_kernel(&mut self, record: &RawRecord<'_>, take: Take<'_>) {
        let time = take(record, self.before_last);
        self.now = self.now.max(time);
    }

    fn finish(&mut self) {
        (self.before_last, self.last) = (self.last, self.now);
    }
}

/// Largest expansion: bytes out per byte in. perf's own ratio, as `perf report --header-only` shows
/// it, was 6 for sort(1) at 20,000 samples a second and 1775 with 64 KiB of stack in every sample of
/// a small program (`perf record -z --call-graph dwarf,65528`, version 6.1). It bounds the time.
const MOST_TIMES: u64 = 8000;
/// Bytes that may come out of any input, however small.
const FREE: u64 = 64 << 20;
/// Most records for each compressed byte, and for any input; a sample of three words took a byte and
/// more in the same recordings. They bound the memory, as bytes of stack are not held.
const RECORDS_PER_BYTE: u64 = 2;
const FREE_RECORDS: u64 = 1 << 18;
/// Largest window of the stream, as zstd's default (`ZSTD_WINDOWLOG_LIMIT_DEFAULT`).
const LARGEST_WINDOW: u64 = 1 << 27;
/// Buffer for expanded bytes: more than a record, whose size has 16 bits.
const ROOM: usize = 256 << 10;
/// An empty last block, and a checksum that is not verified.
const END: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// Expands the compressed records of one file.
pub struct Expander {
    decoder: FrameDecoder,
    /// Compressed bytes of an incomplete block.
    input: Vec<u8>,
    /// Whether a frame has begun and not ended, and whether it ends with a checksum.
    frame: Option<bool>,
    /// Buffer for expanded bytes; the first `filled` are an incomplete record.
    output: Vec<u8>,
    filled: usize,
    /// Bytes in and out, and records out.
    taken: u64,
    given: u64,
    records: u64,
}

impl Expander {
    /// For the records of a file.
    pub fn new() -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(LARGEST_WINDOW);
        let (input, output) = (Vec::new(), Vec::new());
        Self { decoder, input, frame: None, output, filled: 0, taken: 0, given: 0, records: 0 }
    }

    /// Adds the body of a compressed record and calls `each` with each complete record in it. `sized`:
    /// the body begins with the size of its data, as in COMPRESSED2 records (but not in COMPRESSED).
    ///
    /// # Errors
    /// The stream is damaged or expands beyond the limit; nothing can be added after that.
    pub fn add(
        &mut self,
        body: &[u8],
        sized: bool,
        each: &mut dyn FnMut(&Header<'_>),
    ) -> Result<(), Broken> {
        let data = match sized {
            false => Some(body),
            true => {
                word(body, 0).and_then(|size| body.get(8..)?.get(..usize::try_from(size).ok()?))
            }
        };
        let data = data.ok_or(Broken::Claims)?;
        self.taken += data.len() as u64;
        self.input.extend_from_slice(data);
        let mut used = 0;
        while let Some(length) = self.decode(used)? {
            used += length;
            self.pass_on(each)?;
        }
        self.input.drain(..used);
        Ok(())
    }

    /// Ends the stream: calls `each` with the records that the decoder has held back.
    ///
    /// # Errors
    /// The records end inside a block or a record.
    pub fn finish(&mut self, each: &mut dyn FnMut(&Header<'_>)) -> Result<(), Broken> {
        if self.frame.take().is_some() {
            let strategy = BlockDecodingStrategy::UptoBlocks(1);
            guarded(|| Ok(self.decoder.decode_blocks(&END[..], strategy)?))?;
            self.pass_on(each)?;
        }
        match self.input.is_empty() && self.filled == 0 {
            true => Ok(()),
            false => Err(Broken::Ends),
        }
    }

    /// Decodes the frame header or block at offset `at` of the input and returns its length; `None`
    /// if it is incomplete.
    fn decode(&mut self, at: usize) -> Result<Option<usize>, Broken> {
        let rest = &self.input[at..];
        let Some(checksum) = self.frame else {
            let Some(length) = frame_header(rest).filter(|n| *n <= rest.len()) else {
                return Ok(None);
            };
            guarded(|| Ok(self.decoder.reset(&rest[..length])?))?;
            self.frame = Some(rest[4] & 4 != 0);
            return Ok(Some(length));
        };
        let Some(length) = block(rest, checksum).filter(|n| *n <= rest.len()) else {
            return Ok(None);
        };
        let strategy = BlockDecodingStrategy::UptoBlocks(1);
        if guarded(|| Ok(self.decoder.decode_blocks(&rest[..length], strategy)?))? {
            self.frame = None;
        }
        Ok(Some(length))
    }

    /// Reads the decoder's output and calls `each` with its complete records.
    fn pass_on(&mut self, each: &mut dyn FnMut(&Header<'_>)) -> Result<(), Broken> {
        self.output.resize(ROOM, 0);
        while self.decoder.can_collect() > 0 {
            let room = &mut self.output[self.filled..];
            let given = guarded(|| self.decoder.read(room).map_err(|e| Broken::Output(e.into())))?;
            self.filled += given;
            self.given += given as u64;
            if self.given > FREE + self.taken.saturating_mul(MOST_TIMES) {
                return Err(Broken::Bytes(self.taken, self.given >> 20));
            }
            let (whole, count) = records(&self.output[..self.filled], each)?;
            self.records += count;
            if self.records > FREE_RECORDS + self.taken.saturating_mul(RECORDS_PER_BYTE) {
                return Err(Broken::Records(self.taken, self.records));
            }
            self.output.copy_within(whole..self.filled, 0);
            self.filled -= whole;
        }
        Ok(())
    }
}

/// Calls `each` with the complete records in `bytes` and returns their length and number.
fn records(bytes: &[u8], each: &mut dyn FnMut(&Header<'_>)) -> Result<(usize, u64), Broken> {
    let (mut at, mut count) = (0, 0);
    while let Some(header) = word(bytes, at) {
        let size = (header >> 48) as usize;
        if size < 8 {
            return Err(Broken::SmallInside(size));
        }
        let Some(body) = bytes.get(at + 8..at + size) else { break };
        each(&Header { kind: header as u32, misc: (header >> 32) as u16, body });
        at += size;
        count += 1;
    }
    Ok((at, count))
}

/// Runs the decoder: an assertion in it that fails on damaged data is an error like others. What
/// the decoder still gives after that ends at the next error.
fn guarded<T>(run: impl FnOnce() -> Result<T, Broken>) -> Result<T, Broken> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or(Err(Broken::Stopped))
}

/// Length of the frame header (RFC 8878, section 3.1.1.1): magic number, descriptor, window, dictionary
/// id, content size; `None` before the descriptor.
fn frame_header(bytes: &[u8]) -> Option<usize> {
    let descriptor = usize::from(*bytes.get(4)?);
    let single_segment = descriptor >> 5 & 1;
    let content_size = match descriptor >> 6 {
        0 => single_segment,
        flag => 1 << flag,
    };
    Some(5 + (1 - single_segment) + [0, 1, 2, 4][descriptor & 3] + content_size)
}

/// Length of a block with its header (RFC 8878, section 3.1.1.2), with the checksum that ends the frame
/// if this is its last; `None` before the header is complete.
fn block(bytes: &[u8], checksum: bool) -> Option<usize> {
    const RUN: usize = 1;
    let header = half(&[bytes.get(..3)?, &[0]].concat(), 0)? as usize;
    let content = if header >> 1 & 3 == RUN { 1 } else { header >> 3 };
    let last = header & 1 != 0;
    Some(3 + content + if last && checksum { 4 } else { 0 })
}
