//! Addresses of an ELF file (p_vaddr), and offsets in it.

use super::request::Place;
use object::{Object as _, ObjectSegment as _};
use std::path::Path;
use tma::{Error, Result};

/// Address and offset of a place in the file at `path`.
///
/// # Errors
/// It is not an ELF file, or has nothing there.
pub fn place(path: &Path, place: Place) -> Result<(u64, u64)> {
    let failed = || Error::failed(format!("cannot read {}", path.display()));
    let data = std::fs::read(path).map_err(|e| failed().because(e))?;
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
    found.ok_or_else(|| {
        let (Place::Address(at) | Place::Offset(at)) = place;
        failed().because(format!("no segment of it contains {at:#x}"))
    })
}
