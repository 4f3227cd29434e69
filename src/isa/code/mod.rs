//! Machine code as bytes and as instructions: reading it in, decoding it, and telling what must
//! not be run outside its program.
//!
//! | file | concern |
//! |---|---|
//! | `hex` | bytes as people write them |
//! | `assemble` | Intel and AT&T syntax, through the system's assembler |
//! | `listing`, `directives` | assembly files: what may be in them, and their marked regions |
//! | `elf`, `contents` | address ranges and functions of an ELF file; the blocks of a function |
//! | `binary` | raw machine code |
//! | `markers`, `region` | what people put around the code they mean, and cutting it out |
//! | `decode` | bytes → [`Block`] |
//! | `refuse`, `leave` | which instructions are refused, and why; the block without one that leaves it |
//!
//! Nothing here executes anything but the assembler.

mod assemble;
mod binary;
mod contents;
mod decode;
mod directives;
mod elf;
mod hex;
mod leave;
mod listing;
mod markers;
mod refuse;
mod region;

pub use assemble::{Syntax, assemble};
pub use binary::read_binary;
pub use contents::{BlockLine, FunctionBlocks, list_blocks};
pub(crate) use decode::intel;
pub use decode::{Block, Inst, text};
pub use directives::check as check_directives;
pub use elf::{Located, Location, function_around, read_location, read_path};
pub use hex::parse_hex;
pub use listing::{LONGEST_LISTING, listing_syntax, read_listing};
pub use markers::{Marked, marked};
pub use refuse::Refusal;
pub use region::Region;
