//! The types of static variables, by address.

use super::read::Types;
use super::shape::TypeRef;
use super::units::referred;
use crate::symbols::reader::Reader;
use gimli::{AttributeValue, DebuggingInformationEntry, Operation, UnitRef};
use std::collections::HashMap;

type Entry = DebuggingInformationEntry<Reader>;

/// Types by first address (p_vaddr).
#[derive(Debug, Default)]
pub(super) struct Statics {
    types: HashMap<u64, TypeRef>,
}

impl Statics {
    /// Reads all units once.
    pub fn read(types: &Types) -> Self {
        let mut found = HashMap::new();
        types.units.each(&mut |unit| {
            let mut entries = unit.entries();
            while let Ok(Some(entry)) = entries.next_dfs() {
                if entry.tag() == gimli::DW_TAG_variable
                    && let Some(address) = address(unit, entry)
                    && let Some(ty) = type_of(unit, entry)
                {
                    found.entry(address).or_insert(ty);
                }
            }
        });
        Self { types: found }
    }

    /// The type of the variable that begins at an address.
    pub fn at(&self, start: u64) -> Option<TypeRef> {
        self.types.get(&start).copied()
    }
}

fn address(unit: UnitRef<'_, Reader>, entry: &Entry) -> Option<u64> {
    let AttributeValue::Exprloc(expression) = entry.attr_value(gimli::DW_AT_location)? else {
        return None;
    };
    let mut operations = expression.operations(unit.encoding());
    let address = match operations.next().ok()?? {
        Operation::Address { address } => address,
        Operation::AddressIndex { index } => unit.address(index).ok()?,
        _ => return None,
    };
    // More operations follow for thread-local variables.
    operations.next().ok()?.is_none().then_some(address)
}

fn type_of(unit: UnitRef<'_, Reader>, entry: &Entry) -> Option<TypeRef> {
    let own = entry.attr_value(gimli::DW_AT_type);
    if let Some(value) = own {
        return referred(unit, false, value);
    }
    let declared = entry
        .attr_value(gimli::DW_AT_specification)
        .or_else(|| entry.attr_value(gimli::DW_AT_abstract_origin))?;
    let AttributeValue::UnitRef(at) = declared else { return None };
    referred(unit, false, unit.entry(at).ok()?.attr_value(gimli::DW_AT_type)?)
}
