//! Functions, blocks and loops of a program's file, by the places that a user names.
//!
//! | file | concern |
//! |---|---|
//! | `location` | places in a program as a user writes them |
//! | `elf`, `function_blocks` | address ranges and functions of an ELF file; the blocks of a function |
//! | `elf_function` | functions by name, or around an address |
//! | `unwind` | functions of files without symbols |
//! | `loop_region` | the loop around a block of a program |
//! | `preferred`, `nameless` | the name of code that has several, or none |

mod elf;
mod elf_function;
mod function_blocks;
mod location;
mod loop_region;
mod nameless;
mod preferred;
mod unwind;

pub use elf::{Located, function_around, read_location, read_named, read_path, read_ranges};
pub use elf_function::{Known, Names};
pub use function_blocks::{BlockLine, FunctionBlocks, LoopLine, list_blocks};
pub use location::{Location, LoopName, split as split_location};
pub use loop_region::{Around, loop_around, loop_region};
pub use nameless::{nameless, nameless_start};
pub use preferred::preference;
