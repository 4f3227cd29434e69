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
//! | file | concern |
//! |---|---|
//! | `layout` | file header, chunk headers, checksums |
//! | `counts`, `samples` | payloads |
//! | `chunk` | [`Chunk`]: kinds of chunks |
//! | `write`, `read` | a sequence of chunks |
//! | `tame` | texts without control characters |
//! | `contents` | [`Session`]: a whole session without its samples |
//! | `recording` | its samples, as a [`Recording`](crate::recording::Recording) |
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
mod write;

pub use chunk::{
    BuildId, CHUNK_HEADER, Chunk, CountedEvent, FILE_HEADER, LONGEST_CHUNK, MAGIC, NO_SAMPLES,
    RecordBatch, SampledEvent, SampledEvents, Session, SoftwareCounts, StoredCounts, StoredTable,
    VERSION,
};
pub use read::{Reader, load, load_from};
pub use recording::{has_samples, load_recording, open, open_growing, recording_from};
pub use write::SessionWriter;
