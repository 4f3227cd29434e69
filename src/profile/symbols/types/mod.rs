//! Types of data from DWARF: members of static variables, and variables in registers and on the stack at an
//! instruction.
//!
//! | file | concern |
//! |---|---|
//! | `read` | an entry → a type, and the member at an offset of one |
//! | `scopes` | the variables in scope at an instruction |
//! | `shape` | a type as data; the units of a file |
//!
//! Anything missing in DWARF is unknown, with the reason ([`Untyped`]).

mod read;
mod scopes;
mod shape;

use super::reader::{Entry, Reader};
use gimli::{AttributeValue, Operation, UnitRef};
use read::{Types, member_at};
use scopes::{Frames, Functions, variables};
use shape::referred;
use std::collections::HashMap;
use std::sync::Arc;

pub use read::Member;
pub use scopes::{Place, Variable};
pub use shape::{Pointee, TypeRef, Untyped};

/// Instructions whose variables are cached.
const MOST_KNOWN: usize = 1 << 16;

/// The types of a module.
#[derive(Debug)]
pub(in crate::symbols) struct DataTypes {
    types: Types,
    frames: Frames,
    statics: Option<Statics>,
    /// Functions by unit.
    functions: HashMap<usize, Functions>,
    known: HashMap<u64, Arc<Vec<Variable>>>,
}

impl DataTypes {
    /// Types in `dwarf`; `program` has the unwind tables.
    pub fn new(dwarf: Arc<gimli::Dwarf<Reader>>, program: &object::File<'_>) -> Self {
        Self {
            types: Types::new(dwarf),
            frames: Frames::new(program),
            statics: None,
            functions: HashMap::new(),
            known: HashMap::new(),
        }
    }

    /// The variables in scope at `address`, those of the innermost scope first; `unit` is what its code is in.
    pub fn variables(
        &mut self,
        unit: gimli::UnitRef<'_, Reader>,
        address: u64,
    ) -> Arc<Vec<Variable>> {
        if let Some(known) = self.known.get(&address) {
            return Arc::clone(known);
        }
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        let functions =
            self.functions.entry(unit.header.offset().0).or_insert_with(|| Functions::of(unit));
        let entry = functions.at(address);
        let cfa = self.frames.at(address);
        let found = entry.map(|entry| variables(unit, entry, address, cfa)).unwrap_or_default();
        let found = Arc::new(found);
        self.known.insert(address, Arc::clone(&found));
        found
    }

    /// The type of the static variable that begins at `start`.
    pub fn of_static(&mut self, start: u64) -> Result<TypeRef, Untyped> {
        let statics = self.statics.get_or_insert_with(|| Statics::read(&self.types));
        statics.at(start).ok_or(Untyped::NoVariable)
    }

    /// The member at an offset of a type.
    pub fn member(&mut self, ty: TypeRef, offset: u64, exact: bool) -> Result<Member, Untyped> {
        member_at(&mut self.types, ty, offset, exact)
    }

    /// Target of a pointer of this type.
    pub fn pointee(&mut self, ty: TypeRef) -> Result<Pointee, Untyped> {
        self.types.get(ty)?.pointee()
    }

    /// Bytes of a type, if known.
    pub fn size(&mut self, ty: TypeRef) -> Option<u64> {
        self.types.size(ty)
    }
}

/// Types by first address (p_vaddr).
#[derive(Debug, Default)]
struct Statics {
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
