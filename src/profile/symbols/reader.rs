//! How DWARF is read: from copies of the sections.

use crate::files::Files;
use gimli::{EndianArcSlice, RunTimeEndian};
use object::{Object as _, ObjectSection as _};
use std::sync::Arc;

/// The data of a section.
pub(super) type Reader = EndianArcSlice<RunTimeEndian>;

/// Largest ratio by which a compressed section may claim to expand: zlib's maximum is 1032, that of
/// debug information some dozen.
const MOST_SHRUNK: u64 = 1100;

/// A section, decompressed; empty where it is missing or cannot be read.
pub(super) fn section(file: &object::File<'_>, name: &str, files: &Files) -> Reader {
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let data = file.section_by_name(name).and_then(|section| {
        let compressed = section.compressed_data().ok()?;
        let most = (compressed.data.len() as u64).saturating_mul(MOST_SHRUNK);
        if compressed.uncompressed_size > most {
            return None;
        }
        files.take(compressed.uncompressed_size).ok()?;
        compressed.decompress().ok()
    });
    EndianArcSlice::new(Arc::from(&*data.unwrap_or_default()), endian)
}
