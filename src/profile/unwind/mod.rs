//! One caller by unwind tables (`.eh_frame`, `.debug_frame`): from the registers and a copy of the stack that a sample has.
//!
//! | file | concern |
//! |---|---|
//! | `table` | the unwind tables of an ELF file, by address |
//! | `row` | what holds at one instruction: where the caller's registers are |
//! | `registers` | registers and the copied stack of a sample |
//!
//! Rows are evaluated by gimli, with all registers; nothing is read but the tables and the copy. Where no row
//! covers code (that of a JIT, assembly), the frame pointer is followed if what it points to can be a frame.

mod registers;
mod row;
mod table;

pub(crate) use registers::{Processor, Registers, Stack};
pub(crate) use row::{Cfa, Stop};
pub(crate) use table::Table;
