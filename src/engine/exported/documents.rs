//! The JSON documents of a file, one after the other, plain or compressed by gzip.

use ::report::documents::{Report, report};
use flate2::read::MultiGzDecoder;
use fleet::window::{self, Window};
use serde_json::Value;
use std::io::{self, Read as _};
use std::path::Path;
use tma::{Error, Result};

/// Largest file read, in bytes, also after it is unpacked.
const MAX_FILE: u64 = 256 << 20;
/// Begin of a file that gzip made.
const GZIP: &[u8] = b"\x1f\x8b";

/// A document.
pub(super) enum Document {
    /// A window.
    Window(Box<Window>),
    /// A report.
    Report(Box<Report>),
}

/// The documents of the file; `None` of one that is no JSON: a recording.
pub(super) fn read(path: &Path) -> Result<Option<Vec<Document>>> {
    let unreadable = |e: io::Error| tma::error::unreadable(path, &e);
    let file = match path == Path::new("-") {
        true => profile::kept::open(path),
        false => tma::files::open(path),
    };
    let file = file.map_err(unreadable)?;
    let mut start = [0; 64];
    let n = (&file).read(&mut start).map_err(unreadable)?;
    let start = &start[..n];
    if !start.starts_with(GZIP) && start.trim_ascii_start().first().is_none_or(|b| *b != b'{') {
        // A file without anything holds no document either.
        let is_empty = start.trim_ascii().is_empty() && n < 64;
        return Ok(is_empty.then(Vec::new));
    }
    let mut bytes = tma::files::read_open(&file, MAX_FILE).map_err(unreadable)?;
    if bytes.starts_with(GZIP) {
        bytes = unpacked(&bytes).map_err(unreadable)?;
        if bytes.trim_ascii_start().first().is_some_and(|b| *b != b'{') {
            return Ok(None);
        }
    }
    let all = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
    all.map(|value| document(path, value.map_err(|e| damaged(path, &e))?))
        .collect::<Result<_>>()
        .map(Some)
}

fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    MultiGzDecoder::new(bytes).take(MAX_FILE + 1).read_to_end(&mut out)?;
    match out.len() as u64 > MAX_FILE {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it unpacks to more than {MAX_FILE} bytes"),
        )),
        false => Ok(out),
    }
}

fn document(path: &Path, value: Value) -> Result<Document> {
    let schema = value.get("schema").and_then(Value::as_str).unwrap_or("none").to_owned();
    match schema.as_str() {
        window::SCHEMA => serde_json::from_value(value).map(Document::Window),
        report::SCHEMA => serde_json::from_value(value).map(Document::Report),
        _ => {
            let (window, report) = (window::SCHEMA, report::SCHEMA);
            let shown = tma::text::name(&schema);
            return Err(Error::failed(format!("cannot export {}", tma::files::name(path)))
                .because(format!("its schema is `{shown}`, not `{window}` or `{report}`"))
                .hint("give windows, reports (`tdtool report --format json`) or recordings"));
        }
    }
    .map_err(|e| damaged(path, &e))
}

fn damaged(path: &Path, cause: &serde_json::Error) -> Error {
    Error::failed(format!("{} is damaged", tma::files::name(path)))
        .because(cause)
        .hint("leave it out, or write it anew; nothing of it was exported")
}
