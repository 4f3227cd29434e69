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
