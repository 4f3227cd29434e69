//! Reading and decoding machine code, and finding instructions that are unsafe to run outside
//! their program.
//!
//! | file | concern |
//! |---|---|
//! | `hex` | bytes as hexadecimal text |
//! | `assemble`, `pasted` | Intel and AT&T syntax, listings too, through the system's assembler |
//! | `listing`, `directives` | assembly files: their marked regions and the directives accepted in them |
//! | `location` | places in a program as a user writes them |
//! | `elf`, `function_blocks` | address ranges and functions of an ELF file; the blocks of a function |
//! | `elf_function` | functions by name, or around an address |
//! | `unwind` | functions of files without symbols |
//! | `loop_region` | the loop around a block of a program |
//! | `preferred`, `nameless` | the name of code that has several, or none |
//! | `binary` | raw machine code and files with IACA markers |
//! | `markers`, `region` | region markers; extracting a region from an object file |
//! | `inst` | one instruction |
//! | `decode` | bytes → [`Block`] |
//! | `refusal` | instructions that are refused, with the reason |
//! | `revealing` | instructions from which a block could learn addresses |
//! | `one_address` | a block whose loads are all from one address |
//! | `exit` | a block without the call, return or indirect jump at its end |
//!
//! The only program that this module runs is the assembler.

mod assemble;
mod binary;
mod decode;
mod directives;
mod elf;
mod elf_function;
mod exit;
mod function_blocks;
mod hex;
mod inst;
mod listing;
mod location;
mod loop_region;
mod markers;
mod nameless;
mod one_address;
mod pasted;
mod preferred;
mod refusal;
mod region;
mod revealing;
mod unwind;

pub use assemble::{Syntax, assemble};
pub use binary::read_binary;
pub use decode::Block;
pub use directives::check as check_directives;
pub use elf::{Located, function_around, read_known, read_location, read_path, read_ranges};
pub use elf_function::Known;
pub use function_blocks::{BlockLine, FunctionBlocks, LoopLine, list_blocks};
pub use hex::parse_hex;
pub(crate) use inst::InstBuilder;
pub use inst::{Inst, text};
pub use listing::{MAX_LISTING_BYTES, listing_syntax, read_listing};
pub use location::{Location, LoopName, split as split_location};
pub use loop_region::{Around, loop_around, loop_region};
pub use markers::{Marked, marked};
pub use nameless::{nameless, nameless_start};
pub use one_address::loads_at;
pub use preferred::preference;
pub use refusal::Refusal;
pub use region::Region;
