//! Functions of files without symbols, from their unwind table (`.eh_frame`).

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection as _};
use object::{Object as _, ObjectSection as _};
use std::ops::Range;

/// The function that contains `address`: compilers describe every one, and stripping keeps that.
pub(super) fn around(file: &object::File<'_>, address: u64) -> Option<Range<u64>> {
    let section = file.section_by_name(".eh_frame")?;
    let mut frames = EhFrame::new(section.data().ok()?, LittleEndian);
    frames.set_address_size(8);
    let address_of = |name| file.section_by_name(name).map_or(0, |section| section.address());
    let bases = BaseAddresses::default()
        .set_eh_frame(section.address())
        .set_text(address_of(".text"))
        .set_got(address_of(".got"));
    let mut entries = frames.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else { continue };
        let start = entry.initial_address();
        let range = start..start.saturating_add(entry.len());
        if range.contains(&address) {
            return Some(range);
        }
    }
    None
}
