//! Build-ids: of a file from its ELF notes, of the running kernel from /sys/kernel/notes.

use crate::profile::symbols::build_id_in;
use object::{Object, ReadCache};
use std::fs::File;
use std::path::Path;

/// The build-id of an ELF file; `None`: no such file, no ELF file, or it has none.
pub fn of_file(path: &Path) -> Option<Vec<u8>> {
    // Opening a pipe or a device might wait, or do something.
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let cache = ReadCache::new(File::open(path).ok()?);
    let id = object::File::parse(&cache).ok()?.build_id().ok()??.to_vec();
    (!id.is_empty() && id.len() <= 64).then_some(id)
}

/// The build-id of the running kernel.
pub(super) fn of_kernel() -> Option<Vec<u8>> {
    build_id_in(&std::fs::read("/sys/kernel/notes").ok()?)
}
