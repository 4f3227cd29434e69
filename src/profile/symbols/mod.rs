//! Functions, source lines and inlined functions of modules.
//!
//! | file | concern |
//! |---|---|
//! | [`demangle`](mod@demangle) | names as in the source |
//! | `table` | symbols → the function at an address |
//! | `elf`, `go` | functions and static variables of an ELF file; functions of stripped Go programs |
//! | `dwarf`, `reader` | lines and inlined functions; how sections are read, split DWARF |
//! | `types` | types of data: members of variables |
//! | `program` | one ELF file with everything read from it so far, and its debug file |
//! | `kernel` | symbols of the running kernel, the vdso |
//! | `lookup` | [`Symbols`]: symbols of all modules, cached; `lookup/load`: reading those of one |
//!
//! Names are never guessed: a module whose file has changed since the recording has no functions, and
//! code without symbols is named by section and offset.

pub mod demangle;
mod dwarf;
mod elf;
mod go;
mod kernel;
mod lookup;
mod program;
mod reader;
mod table;
mod types;

pub use dwarf::SourcePoint;
pub use elf::DataObject;
pub use kernel::Origin;
pub use lookup::Symbols;
pub use program::ProgramImage;
pub use table::{Function, Line};
pub use types::{Member, Place, Pointee, TypeRef, Untyped, Variable};
