//! A window as the bytes of a file, and back: gzip of JSON, in which a checksum finds what was damaged.

use super::defect::Defect;
use crate::window::{SCHEMA, Window};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use std::io::{self, Read as _, Write as _};

/// Most bytes of a file, and of its document sixteen times as many: more is no window.
pub const LARGEST: u64 = 16 << 20;
/// Most bytes of a document.
const LARGEST_DOCUMENT: u64 = 16 * LARGEST;

/// The bytes of a window's file.
pub(super) fn encode(window: &Window) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(window)?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&json)?;
    packed.finish()
}

/// The window in these bytes.
pub(super) fn decode(bytes: &[u8]) -> Result<Window, Defect> {
    let mut json = Vec::new();
    let mut packed = GzDecoder::new(bytes).take(LARGEST_DOCUMENT + 1);
    packed.read_to_end(&mut json).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => Defect::Cut,
        _ => Defect::Garbled,
    })?;
    if json.len() as u64 > LARGEST_DOCUMENT {
        return Err(Defect::TooLarge);
    }
    if !packed.into_inner().into_inner().is_empty() {
        return Err(Defect::Garbled);
    }
    // The schema first: a later one may have other keys.
    let head: Head = serde_json::from_slice(&json).map_err(|e| Defect::NoWindow(e.into()))?;
    if head.schema != SCHEMA {
        return Err(Defect::Schema(head.schema));
    }
    serde_json::from_slice(&json).map_err(|e| Defect::NoWindow(e.into()))
}

/// What every document begins with.
#[derive(serde::Deserialize)]
struct Head {
    schema: String,
}
