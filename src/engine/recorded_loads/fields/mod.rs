//! The operand of a load or store in the source: `node->next`, from DWARF and the code before it (as
//! `perf annotate --data-type`).
//!
//! | file | concern |
//! |---|---|
//! | `operand` | what an instruction's operand is made of |
//! | `object` | the object that an operand is in → its member |
//! | `definition` | the instruction that gave a register its value |
//! | `registers` | what a register points to |

mod definition;
mod object;
mod operand;
mod registers;

pub(crate) use object::Field;
pub(crate) use operand::Operand;

use super::code::Code;
use profile::address_space::ModuleAddress;
use profile::files::SearchPaths;
use profile::module::{Module, ModuleKind};
use profile::symbols::{Symbols, Untyped};
use std::path::Path;

/// The operands of a program.
pub(crate) struct Fields {
    code: Code,
}

impl Fields {
    /// The fields of a file's accesses.
    pub fn of(program: &Path) -> Self {
        let path = program.display().to_string();
        let module = Module { path, kind: ModuleKind::File, ..Module::default() };
        Self { code: Code::new(Symbols::new(SearchPaths::default()), vec![module]) }
    }

    /// The field that the instruction at `address` accesses, if it is known.
    pub fn at(&mut self, address: u64) -> Option<Field> {
        field(ModuleAddress { module: 0, address }, &mut self.code).ok()
    }
}

/// The member that the instruction at `place` accesses.
///
/// # Errors
/// The reason why it is not known.
pub(crate) fn field(place: ModuleAddress, code: &mut Code) -> Result<Field, Untyped> {
    let instruction = code.instruction(place).ok_or(Untyped::NoVariable)?;
    let operand = Operand::of(&instruction).ok_or(Untyped::NoVariable)?;
    let object = registers::object(place, &operand, code, 0)?;
    object.field(place.module, code).map(|(field, _)| field)
}
