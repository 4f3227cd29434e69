//! The canonical frame address by the unwind tables (`.eh_frame`).

use super::location::Base;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EndianArcSlice, RunTimeEndian, UnwindContext,
    UnwindSection as _,
};
use object::{Object as _, ObjectSection as _};
use std::fmt;
use std::sync::Arc;

/// The unwind tables of a program.
pub(super) struct Frames {
    table: EhFrame<EndianArcSlice<RunTimeEndian>>,
    bases: BaseAddresses,
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
        Self { table: EhFrame::from(data), bases }
    }

    /// Register and offset of the canonical frame address at `address`.
    pub fn at(&self, address: u64) -> Base {
        let find = EhFrame::cie_from_offset;
        let entry = self.table.fde_for_address(&self.bases, address, find).ok()?;
        let mut context = UnwindContext::new();
        let row =
            entry.unwind_info_for_address(&self.table, &self.bases, &mut context, address).ok()?;
        match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Some((register.0, *offset)),
            CfaRule::Expression(_) => None,
        }
    }
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames").finish_non_exhaustive()
    }
}
