//! The units of a file, and the entries that others refer to.

use super::shape::TypeRef;
use crate::symbols::reader::Reader;
use gimli::{AttributeValue, Dwarf, Unit, UnitRef};
use std::collections::HashMap;

use std::sync::Arc;

type Header = gimli::UnitHeader<Reader>;

/// The units of a file and of the one that it shares parts with.
#[derive(Debug)]
pub(super) struct Units {
    dwarf: Arc<Dwarf<Reader>>,
    /// Their headers by offset: own ones, shared ones.
    headers: [Vec<(usize, Header)>; 2],
    read: HashMap<(bool, usize), Option<Arc<Unit<Reader>>>>,
}

impl Units {
    pub fn new(dwarf: Arc<Dwarf<Reader>>) -> Self {
        let headers = [headers(Some(&dwarf)), headers(dwarf.sup())];
        Self { dwarf, headers, read: HashMap::new() }
    }

    /// The own units, in order.
    pub fn each(&self, visit: &mut dyn FnMut(UnitRef<'_, Reader>)) {
        for (_, header) in &self.headers[0] {
            if let Ok(unit) = self.dwarf.unit(header.clone()) {
                visit(unit.unit_ref(&self.dwarf));
            }
        }
    }

    /// Calls `read` with the unit that has an entry, and the entry's offset in it.
    pub fn with<T>(
        &mut self,
        at: TypeRef,
        read: impl FnOnce(UnitRef<'_, Reader>, gimli::UnitOffset) -> Option<T>,
    ) -> Option<T> {
        let dwarf = Arc::clone(&self.dwarf);
        let dwarf: &Dwarf<Reader> = if at.shared { dwarf.sup()? } else { &dwarf };
        let headers = &self.headers[usize::from(at.shared)];
        let after = headers.partition_point(|(start, _)| *start <= at.offset);
        let (start, header) = headers.get(after.checked_sub(1)?)?;
        let key = (at.shared, *start);
        let unit = self
            .read
            .entry(key)
            .or_insert_with(|| dwarf.unit(header.clone()).ok().map(Arc::new))
            .clone()?;
        let offset = gimli::DebugInfoOffset(at.offset).to_unit_offset(&unit.header)?;
        read(unit.unit_ref(dwarf), offset)
    }
}

fn headers(dwarf: Option<&Dwarf<Reader>>) -> Vec<(usize, Header)> {
    let mut all = Vec::new();
    let Some(dwarf) = dwarf else { return all };
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        if let Some(offset) = header.debug_info_offset() {
            all.push((offset.0, header));
        }
    }
    all
}

/// Target of a reference in an attribute of an entry of `unit`.
pub(super) fn referred(
    unit: UnitRef<'_, Reader>,
    shared: bool,
    value: AttributeValue<Reader>,
) -> Option<TypeRef> {
    match value {
        AttributeValue::UnitRef(at) => {
            let offset = at.to_debug_info_offset(&unit.header)?.0;
            Some(TypeRef { shared, offset })
        }
        AttributeValue::DebugInfoRef(at) => Some(TypeRef { shared, offset: at.0 }),
        AttributeValue::DebugInfoRefSup(at) => Some(TypeRef { shared: true, offset: at.0 }),
        // Types in units of their own (`-fdebug-types-section`) are not read.
        _ => None,
    }
}
