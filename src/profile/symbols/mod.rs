//! Functions, source lines and inlined functions of modules.
//!
//! | file | concern |
//! |---|---|
//! | `function`, `origin` | what is found, and for which recording |
//! | [`demangle`](mod@demangle) | names as in the source |
//! | `table` | symbols → the function at an address |
//! | `elf` | symbols, PLT stubs, unwind entries and sections of an ELF file |
//! | `objects` | static variables of an ELF file |
//! | `debug_file`, `mini`, `split` | separate debug files; symbols of stripped files; split DWARF |
//! | `go` | functions of stripped Go programs |
//! | `dwarf`, `reader` | lines and inlined functions; how sections are read |
//! | `types` | types of data: members of variables |
//! | `source_point` | instructions as sample profiles of compilers name them |
//! | `program` | one ELF file with everything read from it so far |
//! | `kernel` | symbols of the running kernel, the vdso |
//! | `jit` | jitdumps and perf map files |
//! | `lookup` | [`Symbols`]: symbols of all modules, cached; `lookup/load`: reading those of one |
//! | `typed` | the same: types of data |
//!
//! Names are never guessed: a module whose file has changed since the recording has no functions, and
//! code without symbols is named by section and offset.

mod debug_file;
pub mod demangle;
mod dwarf;
mod elf;
mod function;
mod go;
mod jit;
mod kernel;
mod lookup;
mod mini;
mod objects;
mod origin;
mod program;
mod reader;
mod source_point;
mod split;
mod table;
mod typed;
mod types;

pub use function::{Function, Line};
pub use lookup::Symbols;
pub use objects::DataObject;
pub use origin::Origin;
pub use program::ProgramImage;
pub use source_point::SourcePoint;
pub use types::{Member, Place, Pointee, TypeRef, Untyped, Variable};
