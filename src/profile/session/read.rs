//! Reads a session: every complete chunk, an error for a damaged one, a note for a truncated end. Its names are
//! those of recorded programs, so texts are made safe to show.

use super::chunk::{
    CHUNK_HEADER, Chunk, FILE_HEADER, LONGEST_CHUNK, LONGEST_TEXT, MAGIC, RecordBatch, Session,
    VERSION, checksum,
};
use crate::kept;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use tma::error::{Error, Result};
use tma::files;
use tma::text::{name, several};

/// Iterates over the chunks of a session file.
pub struct Reader<R> {
    input: R,
    name: String,
    offset: u64,
    ignored: u64,
    skipped: u64,
    done: bool,
}

impl Reader<BufReader<File>> {
    /// Opens a session file.
    ///
    /// # Errors
    /// It cannot be opened, is no session, or was written by a later version.
    pub fn open(path: &Path) -> Result<Self> {
        let file = crate::kept::open(path).map_err(|e| tma::error::unreadable(path, &e))?;
        Self::new(BufReader::new(file), &files::name(path))
    }
}

impl<R: Read> Reader<R> {
    /// Reads a session from `input`; `name` names it in errors.
    ///
    /// # Errors
    /// It is no session or was written by a later version.
    pub fn new(input: R, name: &str) -> Result<Self> {
        let mut reader =
            Self { input, name: name.to_owned(), offset: 0, ignored: 0, skipped: 0, done: false };
        let mut header = [0; FILE_HEADER];
        let n = reader.fill(&mut header)?;
        if !header[..n.min(MAGIC.len())].starts_with(&MAGIC) {
            return Err(Error::failed(format!("{name} is not a session of tdtool record")));
        }
        if n < FILE_HEADER {
            return Err(Error::failed(format!("{name} ends inside its header: nothing recorded"))
                .because("the recorder was killed, or the disk was full, at its start")
                .hint("record again"));
        }
        if checksum(&header[..12]) != u32_at(&header, 12) {
            return Err(reader.damaged(0, "the checksum of the file header does not match"));
        }
        let version = u32_at(&header, 8);
        if version != VERSION {
            return Err(Error::failed(format!(
                "{name} is a session of version {version}; this tdtool reads version {VERSION}"
            ))
            .hint("use the tdtool that recorded it, or a newer one"));
        }
        reader.offset = FILE_HEADER as u64;
        Ok(reader)
    }

    /// Bytes after the last complete chunk, after the iteration: a truncated write.
    pub fn ignored_bytes(&self) -> u64 {
        self.ignored
    }

    /// Number of chunks of unknown kinds.
    pub fn skipped_chunks(&self) -> u64 {
        self.skipped
    }

    /// Notes on the end of the file, after the iteration.
    pub(super) fn end_notes(&self, has_end: bool) -> Vec<String> {
        let mut notes = Vec::new();
        match self.ignored {
            0 if !has_end => {
                notes.push("the recording was stopped before its end was written".into());
            }
            0 => {}
            n => notes.push(format!(
                "ends early: {} after the last whole chunk ignored",
                several(n, "byte")
            )),
        }
        match self.skipped {
            0 => {}
            n => notes.push(format!("{n} chunks of kinds of a later version skipped")),
        }
        notes
    }

    fn damaged(&self, offset: u64, what: &str) -> Error {
        Error::failed(format!("{} is damaged at byte {offset}", self.name))
            .because(what)
            .hint("copy it again from where it was recorded, in binary mode, or record again")
    }

    /// Reads until `buffer` is full or the file ends.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        kept::fill(&mut self.input, buffer)
            .map_err(|e| Error::failed(format!("cannot read {}", self.name)).because(e))
    }

    /// The next chunk's kind and payload; `None` at the end.
    pub(super) fn next_raw(&mut self) -> Result<Option<(u32, Vec<u8>)>> {
        let start = self.offset;
        let mut header = [0; CHUNK_HEADER];
        let n = self.fill(&mut header)?;
        if n < CHUNK_HEADER {
            self.ignored = n as u64;
            return Ok(None);
        }
        if header == [0; CHUNK_HEADER] {
            // A power cut can leave a tail of zeros where data was not written yet.
            let rest = self.zeros()?;
            let rest =
                rest.ok_or_else(|| self.damaged(start, "zeros where a chunk should begin"))?;
            self.ignored = CHUNK_HEADER as u64 + rest;
            return Ok(None);
        }
        if checksum(&header[..16]) != u32_at(&header, 16) {
            return Err(self.damaged(start, "the checksum of a chunk header does not match"));
        }
        let length = u64::from_le_bytes(header[4..12].try_into().unwrap_or_default());
        if length > LONGEST_CHUNK {
            return Err(self.damaged(start, "a chunk claims to be longer than 1 GiB"));
        }
        // Only these chunks become values, which take many times the memory of their text.
        if matches!(u32_at(&header, 0), 1..=6 | 8..=9) && length > LONGEST_TEXT {
            return Err(self.damaged(start, "a chunk of text claims to be longer than 32 MiB"));
        }
        let mut payload = Vec::new();
        // Grows with the bytes that exist, not with the length that the header claims.
        (&mut self.input)
            .take(length)
            .read_to_end(&mut payload)
            .map_err(|e| Error::failed(format!("cannot read {}", self.name)).because(e))?;
        if (payload.len() as u64) < length {
            self.ignored = (CHUNK_HEADER + payload.len()) as u64;
            return Ok(None);
        }
        if checksum(&payload) != u32_at(&header, 12) {
            return Err(self.damaged(start, "the checksum of a chunk does not match"));
        }
        self.offset += CHUNK_HEADER as u64 + length;
        Ok(Some((u32_at(&header, 0), payload)))
    }

    /// Length of the rest if it is all zeros.
    fn zeros(&mut self) -> Result<Option<u64>> {
        let mut rest = 0;
        let mut block = [0; 4096];
        loop {
            let n = self.fill(&mut block)?;
            if n == 0 {
                return Ok(Some(rest));
            }
            if rest > LONGEST_CHUNK {
                return Ok(None);
            }
            if block[..n].iter().any(|b| *b != 0) {
                return Ok(None);
            }
            rest += n as u64;
        }
    }

    fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        loop {
            let start = self.offset;
            let Some((kind, payload)) = self.next_raw()? else { return Ok(None) };
            let chunk = match kind {
                1 => Chunk::Header(self.decode(start, &payload)?),
                2 => Chunk::Table(serde_json::from_slice(&payload).map_err(|e| {
                    self.damaged(start, &format!("a chunk cannot be decoded: {e}"))
                })?),
                3 => Chunk::Counts(self.decode(start, &payload)?),
                4 => Chunk::Software(self.decode(start, &payload)?),
                5 => Chunk::End(self.decode(start, &payload)?),
                6 => Chunk::SampledEvents(self.decode(start, &payload)?),
                7 => Chunk::Records(self.records(start, payload)?),
                8 => Chunk::BuildIds(self.decode(start, &payload)?),
                9 => Chunk::Machine(self.decode(start, &payload)?),
                _ => {
                    self.skipped += 1;
                    continue;
                }
            };
            return Ok(Some(chunk));
        }
    }

    fn records(&self, start: u64, payload: Vec<u8>) -> Result<RecordBatch> {
        RecordBatch::decode(payload)
            .ok_or_else(|| self.damaged(start, "a chunk of records is shorter than its own header"))
    }

    fn decode<T: DeserializeOwned>(&self, start: u64, payload: &[u8]) -> Result<T> {
        from_slice(payload)
            .map_err(|e| self.damaged(start, &format!("a chunk cannot be decoded: {e}")))
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Result<Chunk>> {
        if self.done {
            return None;
        }
        let next = self.next_chunk().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

/// Reads a whole session.
///
/// # Errors
/// As [`Reader`]; a damaged chunk is an error with its offset.
pub fn load(path: &Path) -> Result<Session> {
    whole(Reader::open(path)?)
}

/// As [`load`], from anything that can be read; `name` names it in errors.
pub fn load_from(input: impl Read, name: &str) -> Result<Session> {
    whole(Reader::new(input, name)?)
}

fn whole<R: Read>(mut reader: Reader<R>) -> Result<Session> {
    let mut session = Session::default();
    for chunk in reader.by_ref() {
        match chunk? {
            Chunk::Header(header) => session.header = header,
            Chunk::Table(table) => session.tables.push(table),
            Chunk::Counts(counts) => session.counts.push(*counts),
            Chunk::Software(software) => session.software.push(software),
            Chunk::End(end) => session.end = Some(end),
            Chunk::SampledEvents(events) => session.sampled = Some(events),
            Chunk::Records(batch) => session.samples += u64::from(batch.samples),
            Chunk::BuildIds(_) => {}
            Chunk::Machine(machine) => session.machine = Some(machine),
        }
    }
    session.notes = reader.end_notes(session.end.is_some());
    let of_run = session.end.iter().filter_map(|end| end["notes"].as_array()).flatten();
    let of_run: Vec<String> = of_run.filter_map(|note| note.as_str()).map(str::to_owned).collect();
    session.notes.extend(of_run);
    Ok(session)
}

/// Decodes JSON, with control characters in texts shown as escapes.
fn from_slice<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    // Where a control character can be: escaped, or beyond ASCII. Counts of an interval have neither.
    if !json.iter().any(|byte| *byte == b'\\' || *byte >= 0x80) {
        return serde_json::from_slice(json);
    }
    let mut value: Value = serde_json::from_slice(json)?;
    tame(&mut value);
    serde_json::from_value(value)
}

fn tame(value: &mut Value) {
    match value {
        Value::String(text) => *text = name(text).into_owned(),
        Value::Array(all) => all.iter_mut().for_each(tame),
        Value::Object(all) => {
            let old = std::mem::take(all);
            all.extend(old.into_iter().map(|(key, mut value)| {
                tame(&mut value);
                (name(&key).into_owned(), value)
            }));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_keys_are_tame() {
        let found: Value =
            from_slice(b"{\"a\\u001b\": [\"\\n\", 1, {\"b\": \"\\\"\\u202e\"}]}").unwrap();
        assert_eq!(found.to_string(), r#"{"a\\u001b":["\\u000a",1,{"b":"\"\\u202e"}]}"#);
        assert_eq!(from_slice::<Value>(b"{\"a\": 0.1}").unwrap()["a"], 0.1);
    }
}
