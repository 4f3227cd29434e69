//! The canonical frame address by the unwind tables (`.eh_frame`).

use super::location::Base;
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameOffset, EndianArcSlice, RunTimeEndian,
    UnwindContext, UnwindSection as _,
};
use object::{Object as _, ObjectSection as _};
use std::fmt;
use std::sync::Arc;

/// The unwind tables of a program.
pub(super) struct Frames {
    table: EhFrame<EndianArcSlice<RunTimeEndian>>,
    bases: BaseAddresses,
    /// Addresses of functions and where their entries are, in order; `None`: not read yet.
    entries: Option<Vec<(u64, u64, EhFrameOffset)>>,
}

impl Frames {
    pub fn new(program: &object::File<'_>) -> Self {
        let section = program.section_by_name(".eh_frame");
        let start = |name| program.section_by_name(name).map(|section| section.address());
        let data = section.as_ref().and_then(|section| section.uncompressed_data().ok());
        let mut bases = BaseAddresses::default();
        if let Some(address) = start(".eh_frame") {
            bases = bases.set_eh_frame(address);
        }
        if let Some(address) = start(".text") {
            bases = bases.set_text(address);
        }
        if let Some(address) = start(".got") {
            bases = bases.set_got(address);
        }
        let data =
            EndianArcSlice::new(Arc::from(&*data.unwrap_or_default()), RunTimeEndian::Little);
        Self { table: EhFrame::from(data), bases, entries: None }
    }

    /// Register and offset of the canonical frame address at `address`.
    pub fn at(&mut self, address: u64) -> Base {
        let (table, bases) = (&self.table, &self.bases);
        let entries = self.entries.get_or_insert_with(|| entries(table, bases));
        let after = entries.partition_point(|(start, ..)| *start <= address);
        let (_, end, offset) = entries.get(after.checked_sub(1)?)?;
        if address >= *end {
            return None;
        }
        let entry = table.fde_from_offset(bases, *offset, EhFrame::cie_from_offset).ok()?;
        let mut context = UnwindContext::new();
        let row = entry.unwind_info_for_address(table, bases, &mut context, address).ok()?;
        match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Some((register.0, *offset)),
            CfaRule::Expression(_) => None,
        }
    }
}

fn entries(
    table: &EhFrame<EndianArcSlice<RunTimeEndian>>,
    bases: &BaseAddresses,
) -> Vec<(u64, u64, EhFrameOffset)> {
    let mut all = Vec::new();
    let mut entries = table.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(own) = partial.parse(EhFrame::cie_from_offset)
        {
            let place = EhFrameOffset(own.offset());
            all.push((own.initial_address(), own.end_address(), place));
        }
    }
    all.sort_by_key(|(start, ..)| *start);
    all
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames").finish_non_exhaustive()
    }
}
