//! Build-ids: of a file from its ELF notes, of the running kernel from /sys/kernel/notes.

use object::{Object, ReadCache};
use std::fs::File;
use std::path::Path;

/// `NT_GNU_BUILD_ID` of elf.h.
const NT_GNU_BUILD_ID: u32 = 3;

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
    find_note(&std::fs::read("/sys/kernel/notes").ok()?)
}

/// Among ELF notes (name size, description size, type; both padded to four bytes) the one with the
/// build-id.
pub(super) fn find_note(mut notes: &[u8]) -> Option<Vec<u8>> {
    while let Some((header, rest)) = notes.split_first_chunk::<12>() {
        let number = |at: usize| header.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let name_size = usize::try_from(number(0)?).ok()?;
        let size = usize::try_from(number(4)?).ok()?;
        let padded = |n: usize| n.checked_next_multiple_of(4);
        let (name, rest) = rest.split_at_checked(padded(name_size)?)?;
        if number(8)? == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return rest.get(..size).filter(|id| !id.is_empty()).map(<[u8]>::to_vec);
        }
        notes = rest.get(padded(size)?..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_is_found_behind_others() {
        // By hand, from elf(5): a note of Xen's with 5 bytes, then GNU's build-id.
        let mut notes = Vec::new();
        for (name, kind, data) in [(&b"Xen\0"[..], 6u32, &b"linux"[..]), (b"GNU\0", 3, b"\x12\x34")]
        {
            notes.extend((name.len() as u32).to_ne_bytes());
            notes.extend((data.len() as u32).to_ne_bytes());
            notes.extend(kind.to_ne_bytes());
            notes.extend(name);
            notes.extend(data);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(find_note(&notes), Some(vec![0x12, 0x34]));
        for cut in 0..notes.len() {
            assert!(find_note(&notes[..cut]).is_none_or(|id| id == [0x12, 0x34]));
        }
        assert_eq!(find_note(&[0xff; 64]), None);
    }
}
