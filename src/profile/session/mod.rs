//! The session file of `tdtool record`: versioned, checksummed, readable after a truncated write.
//!
//! A file is a header and then chunks, each with its length and checksums; docs/reference/session.md
//! specifies every byte. Each chunk is written with one call, so that a killed recording is readable
//! up to its last chunk. Readers skip chunks of unknown kinds.
//!
//! Payloads are JSON: they are self-describing, so later versions can add keys, and ordinary tools can
//! read them. Their size is small compared with the cost of reading counters (a level-3 interval is
//! some 10 KB). Only records of samples are binary, as the kernel wrote them.
//!
//! ```
//! use profile::session::{Chunk, SessionWriter, load, load_from};
//! use serde_json::json;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("run.tdtool");
//! let mut writer = SessionWriter::create(&path)?;
//! writer.append(&Chunk::Header(json!({ "command": ["gzip", "-9"] })))?;
//! writer.append(&Chunk::End(json!({ "exit": 0 })))?;
//! writer.finish()?;
//!
//! let session = load(&path)?;
//! assert_eq!(session.header["command"][0], "gzip");
//! assert_eq!(session.end, Some(json!({ "exit": 0 })));
//!
//! // Cut off inside the last chunk, as by a full disk: what is whole is read, and a note says so.
//! let bytes = std::fs::read(&path)?;
//! let session = load_from(&bytes[..bytes.len() - 1], "run.tdtool")?;
//! assert_eq!(session.header["command"][0], "gzip");
//! assert!(session.end.is_none() && !session.notes.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chunk;
mod read;
mod recording;

use chunk::{LONGEST_TEXT, checksum};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use tma::error::{Error, Result};
use tma::files::is_open_already;

pub use chunk::{
    BuildId, CHUNK_HEADER, Chunk, CountedEvent, FILE_HEADER, LONGEST_CHUNK, MAGIC, NO_SAMPLES,
    RecordBatch, SampledEvent, SampledEvents, Session, SoftwareCounts, StoredCounts, StoredTable,
    VERSION,
};
pub use read::{Reader, load, load_from};
pub use recording::{has_samples, load_recording, open, open_growing, recording_from};

/// Writes one session file. Dropping it leaves a readable file.
#[derive(Debug)]
pub struct SessionWriter {
    file: File,
    path: PathBuf,
    written: u64,
}

impl SessionWriter {
    /// Creates `path`, replacing an existing file; only this user can read it. Follows no symbolic link but those of
    /// open files, such as `/dev/stdout`.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn create(path: &Path) -> Result<Self> {
        let file = create(path).map_err(|e| {
            let error = Error::failed(format!("cannot create the session {}", path.display()));
            match path.parent().filter(|f| !f.as_os_str().is_empty() && !f.exists()) {
                Some(folder) => {
                    error.because(format!("there is no folder {}", folder.display())).hint(format!(
                        "mkdir -p {}, or choose another place",
                        tma::shell::quoted(&[folder])
                    ))
                }
                None if is_full(&e) => error.because(e),
                None => error.because(e).hint("choose another place with --output"),
            }
        })?;
        let mut writer = Self { file, path: path.to_owned(), written: 0 };
        let mut header = Vec::with_capacity(FILE_HEADER);
        header.extend(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend(checksum(&header).to_le_bytes());
        writer.write(&header)?;
        Ok(writer)
    }

    /// Appends one chunk. Once this returns, it persists if the process ends in any way.
    ///
    /// # Errors
    /// The disk is full or fails. The file is truncated to its last complete chunk and
    /// stays readable.
    pub fn append(&mut self, chunk: &Chunk) -> Result<()> {
        let payload = match chunk {
            Chunk::Header(value) | Chunk::End(value) | Chunk::Machine(value) => {
                serde_json::to_vec(value)
            }
            Chunk::SampledEvents(events) => serde_json::to_vec(events),
            Chunk::BuildIds(ids) => serde_json::to_vec(ids),
            Chunk::Records(batch) => Ok(batch.encode()),
            Chunk::Table(table) => serde_json::to_vec(table),
            Chunk::Counts(counts) => serde_json::to_vec(counts),
            Chunk::Software(software) => serde_json::to_vec(software),
        };
        let payload = payload.map_err(|e| self.failed("cannot encode a chunk of").because(e))?;
        if payload.len() as u64 > LONGEST_TEXT && !matches!(chunk, Chunk::Records(_)) {
            return Err(self.failed("a chunk of text is longer than 32 MiB in"));
        }
        self.append_raw(chunk.kind(), &payload)
    }

    /// Appends a payload of any kind.
    fn append_raw(&mut self, kind: u32, payload: &[u8]) -> Result<()> {
        let length = payload.len() as u64;
        if length > LONGEST_CHUNK {
            return Err(self.failed("a chunk is longer than 1 GiB in"));
        }
        let mut chunk = Vec::with_capacity(CHUNK_HEADER + payload.len());
        chunk.extend(kind.to_le_bytes());
        chunk.extend(length.to_le_bytes());
        chunk.extend(checksum(payload).to_le_bytes());
        chunk.extend(checksum(&chunk).to_le_bytes());
        chunk.extend(payload);
        self.write(&chunk)
    }

    /// Syncs the file to disk.
    pub fn finish(self) -> Result<()> {
        self.file.sync_all().map_err(|e| self.failed("cannot finish").because(e))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if let Err(e) = self.file.write_all(bytes) {
            // Pipes cannot be truncated; a file is left with complete chunks only.
            let _ = self.file.set_len(self.written);
            let _ = self.file.seek(SeekFrom::Start(self.written));
            let is_full = is_full(&e);
            let error = self.failed("cannot write to").because(e);
            return Err(match self.written {
                // The header alone says nothing.
                0 => error,
                _ if is_full => {
                    error.hint("make room on the disk; what was written before is readable")
                }
                _ => error.hint("what was written before is readable"),
            });
        }
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn failed(&self, what: &str) -> Error {
        Error::failed(format!("{what} the session {}", self.path.display()))
    }
}

/// Creates a file readable by its user alone, as perf does: it describes a program.
fn create(path: &Path) -> std::io::Result<File> {
    let mut new = OpenOptions::new();
    new.write(true).create_new(true).mode(0o600);
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {
            fs::remove_file(path)?;
            new.open(path)
        }
        Ok(found) if found.is_symlink() && !is_open_already(path) => {
            Err(std::io::Error::other("it is a symbolic link"))
        }
        // A pipe or a device.
        Ok(_) => tma::files::open_stream(path),
        Err(_) => new.open(path),
    }
}

/// Whether there is no room for it.
fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
