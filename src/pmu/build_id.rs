//! Reads build-ids: of a file, of the running kernel, in ELF notes; without `isa::elf`, since what counts and samples
//! does not depend on the analysis of code (docs/architecture.md).

use object::{Object, ReadCache};
use std::fs::File;
use std::path::Path;

/// The build-id of an ELF file; `None`: no such file, no ELF file, or it has none.
pub fn of_file(path: &Path) -> Option<Vec<u8>> {
    // Opening a pipe or a device may block or have side effects.
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    of(&File::open(path).ok()?)
}

/// The build-id of an open ELF file; `None`: it is none, or has none.
pub fn of(file: &File) -> Option<Vec<u8>> {
    let cache = ReadCache::new(file);
    let id = object::File::parse(&cache).ok()?.build_id().ok()??.to_vec();
    (!id.is_empty() && id.len() <= 64).then_some(id)
}

/// The build-id of the running kernel.
pub fn of_kernel() -> Option<Vec<u8>> {
    in_notes(&std::fs::read("/sys/kernel/notes").ok()?)
}

/// The build-id among ELF notes (elf(5)): sizes of name and content, type 3 (`NT_GNU_BUILD_ID`),
/// name, content; both padded to four bytes. `None`: there is none, or a note is cut off before it.
pub fn in_notes(mut notes: &[u8]) -> Option<Vec<u8>> {
    while let Some((head, rest)) = notes.split_at_checked(12) {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i])) as usize;
        let (name_size, size, kind) = (word(0), word(4), word(8));
        let content = name_size.checked_next_multiple_of(4)?;
        let id = rest.get(content..content.checked_add(size)?)?;
        if kind == 3 && rest.starts_with(b"GNU\0") {
            return (!id.is_empty()).then(|| id.to_vec());
        }
        notes = rest.get(content.checked_add(size.checked_next_multiple_of(4)?)?..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_id_is_found_among_notes() {
        let note = |kind: u32, name: &[u8], content: &[u8]| {
            let mut bytes = Vec::new();
            for word in [name.len() as u32, content.len() as u32, kind] {
                bytes.extend(word.to_le_bytes());
            }
            for part in [name, content] {
                bytes.extend(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let notes = [note(6, b"Linux\0", &[1, 2]), note(3, b"GNU\0", &[9, 8, 7])].concat();
        assert_eq!(in_notes(&notes), Some(vec![9, 8, 7]));
        assert_eq!(in_notes(&notes[..20]), None);
        assert_eq!(in_notes(&[0xff; 40]), None);
    }
}
