//! Addresses of an ELF file (p_vaddr), and offsets in it.

use super::request::Place;
use object::elf::{DF_1_PIE, DT_FLAGS_1, DT_SONAME, Dyn64, PT_INTERP};
use object::read::elf::{Dyn as _, ElfFile64, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectKind, ObjectSegment as _};
use std::path::Path;
use tma::{Error, Result};

/// Address and offset of a place in the file at `path`.
///
/// # Errors
/// It is not an ELF file, or has nothing there.
pub fn place(path: &Path, place: Place) -> Result<(u64, u64)> {
    let failed = || Error::failed(format!("cannot read {}", path.display()));
    let data =
        tma::files::read(path, tma::files::LONGEST_PROGRAM).map_err(|e| failed().because(e))?;
    let file = object::File::parse(&*data).map_err(|e| {
        failed()
            .because(format!("it is not an ELF file: {e}"))
            .hint("give a program or shared library")
    })?;
    let found = file.segments().find_map(|segment| {
        let ((offset, size), address) = (segment.file_range(), segment.address());
        let within = match place {
            Place::Address(at) => at.checked_sub(address)?,
            Place::Offset(at) => at.checked_sub(offset)?,
        };
        (within < size).then_some((address + within, offset + within))
    });
    let (Place::Address(at) | Place::Offset(at)) = place;
    found.ok_or_else(|| failed().because(format!("no segment of it contains {at:#x}")))
}

/// Whether an ELF file is a program, not a shared library (which may have an interpreter, too: libc
/// prints its version).
pub fn is_program(data: &[u8]) -> bool {
    let Ok(file) = ElfFile64::<Endianness>::parse(data) else { return false };
    if file.kind() == ObjectKind::Executable {
        return true;
    }
    let endian = file.endian();
    let headers = file.elf_program_headers();
    let mut dynamic =
        headers.iter().filter_map(|h| h.dynamic(endian, data).ok().flatten()).flatten();
    let has_interpreter = headers.iter().any(|h| h.p_type(endian) == PT_INTERP);
    let is_named = dynamic.clone().any(|entry| entry.tag(endian) == DT_SONAME);
    let is_position_independent = |entry: &Dyn64<Endianness>| {
        entry.tag(endian) == DT_FLAGS_1 && entry.val(endian) & DF_1_PIE.0 != 0
    };
    dynamic.any(is_position_independent) || (has_interpreter && !is_named)
}
