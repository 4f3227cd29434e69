//! Probes as machine code: pure, from a site and addresses.
//!
//! | file | concern |
//! |---|---|
//! | `allocated` | the part that logs what a function that gives memory returns |
//! | `marked` | the part that logs a marker |
//! | `labelled` | instructions with jumps among them |
//! | `records` | records in shared memory, and the code that writes one |
//! | `copied` | displaced instructions at their new place |
//! | `pieces` | what all trampolines have |
//! | `trampoline` | those of counts |
//! | `observer` | those that record what an instruction does |
//! | `value` | what a record has of an instruction |
//! | `timed` | the part that times a load |
//! | `registers` | the part that records what registers hold |

mod allocated;
mod copied;
mod labelled;
mod marked;
mod observer;
mod pieces;
mod records;
mod registers;
mod timed;
mod trampoline;
mod value;

pub use allocated::{ENTRIES, ENTRY, LIMIT, LOG, LOGGED};
pub use marked::{EVENT, EVENTS, MOST_EVENTS, MOST_LOOKS, PATIENCE};
pub use observer::{emit_observer, most};
pub use records::{PART, RECORD, RECORDS};
pub use timed::{MOST_BITS, MOST_TIMED, count, countdown};
pub use trampoline::{Patch, emit};
