//! Reading and decoding machine code outside of programs, and finding instructions that are unsafe to run there.
//!
//! | file | concern |
//! |---|---|
//! | `hex` | bytes as hexadecimal text |
//! | `assemble`, `pasted` | Intel and AT&T syntax, listings too, through the system's assembler |
//! | `listing`, `directives` | assembly files: their marked regions and the directives accepted in them |
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
mod exit;
mod hex;
mod inst;
mod listing;
mod markers;
mod one_address;
mod pasted;
mod refusal;
mod region;
mod revealing;

pub use assemble::{Syntax, assemble};
pub use binary::read_binary;
pub use decode::Block;
pub use directives::check as check_directives;
pub use exit::NothingLeft;
pub(crate) use hex::MAX_BLOCK_BYTES;
pub use hex::parse_hex;
pub(crate) use inst::InstBuilder;
pub use inst::{Inst, is_hint, text, text_in_block};
pub use listing::{MAX_LISTING_BYTES, listing_syntax, read_listing};
pub use markers::{Marked, marked};
pub use one_address::loads_at;
pub use refusal::Refusal;
pub use region::Region;
pub(crate) use region::{Placeholders, cut, cut_among};
