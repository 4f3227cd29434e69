//! jitdump files: code that a just-in-time compiler wrote down with names and source lines, as it made it
//! (tools/perf/Documentation/jitdump-specification.txt).
//!
//! | file | concern |
//! |---|---|
//! | `open` | which mapping is of such a file, and whose file may name a process's functions |
//! | `read` | its entries |
//! | `loads` | which code is at an address at a time |
//! | `program` | names, lines and bytes of the code |
//!
//! Addresses of the code are offsets in the file: memory is used for other code again.

mod loads;
mod open;
mod program;
mod read;

pub(crate) use loads::{Load, loads};
pub(crate) use open::{is_dump, open, owned};
pub(crate) use program::{Function, JitProgram, elf};
