//! Mini debug information (`.gnu_debugdata`): the symbols that distributions such as Fedora leave in stripped
//! programs, an ELF file compressed with xz.

use crate::files::Files;
use lzma_rust2::XzReader;
use object::{Object as _, ObjectSection as _};
use std::io::Read as _;

/// Most bytes of the uncompressed file: that of a browser has some 20 MB.
const LARGEST: u64 = 256 << 20;
/// Most memory that decompressing may take, in KiB: xz takes 64 MiB at its highest level.
const MOST_KIB: u32 = 80 << 10;

/// The ELF file inside of `file`, if it has one.
pub(super) fn read(file: &object::File<'_>, files: &Files) -> Option<Vec<u8>> {
    let compressed = file.section_by_name(".gnu_debugdata")?.data().ok()?;
    let mut reader = XzReader::new_mem_limit(compressed, true, MOST_KIB).take(LARGEST + 1);
    let mut found = Vec::new();
    reader.read_to_end(&mut found).ok()?;
    files.take(found.len() as u64).ok()?;
    (found.len() as u64 <= LARGEST).then_some(found)
}
