//! Machine code as bytes and as instructions: reading it in, decoding it, and telling what must
//! not be run outside its program.
//!
//! | file | concern |
//! |---|---|
//! | `hex` | bytes as people write them |
//! | `assemble` | Intel and AT&T syntax, through the system's assembler |
//! | `elf` | address ranges and functions of an ELF file |
//! | `decode` | bytes → [`Block`] |
//! | `refuse` | which instructions are refused, and why |
//!
//! Nothing here executes anything but the assembler.

mod assemble;
mod decode;
mod elf;
mod hex;
mod refuse;

pub use assemble::{Syntax, assemble};
pub use decode::{Block, Inst};
pub use elf::{Location, read_location};
pub use hex::parse_hex;
pub use refuse::Refusal;
