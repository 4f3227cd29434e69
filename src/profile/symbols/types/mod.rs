//! Types of data from DWARF: members of static variables, and variables in registers and on the stack at an
//! instruction.
//!
//! | file | concern |
//! |---|---|
//! | `shape` | a type as data |
//! | `units` | the units of a file, and the entries that others refer to |
//! | `read` | an entry → a type |
//! | `path` | the member at an offset of a type |
//! | `location` | where a variable is at an instruction |
//! | `scopes` | the variables that are in scope at an instruction |
//! | `statics` | the types of static variables, by address |
//! | `frame` | the canonical frame address (CFA) by unwind tables |
//!
//! Anything missing in DWARF is unknown, with the reason ([`Untyped`]).

mod frame;
mod location;
mod path;
mod read;
mod scopes;
mod shape;
mod statics;
mod units;

pub use location::Place;
pub use path::Member;
pub use scopes::Variable;
pub use shape::{Pointee, TypeRef, Untyped};

use crate::symbols::reader::Reader;
use frame::Frames;
use path::member;
use read::Types;
use scopes::{Functions, variables};
use statics::Statics;
use std::collections::HashMap;

use std::sync::Arc;

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
        member(&mut self.types, ty, offset, exact)
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
