//! Probes as machine code: pure, from a site and addresses.
//!
//! | file | concern |
//! |---|---|
//! | `allocated` | logs the results of an allocator |
//! | `marked` | logs a marker |
//! | `labelled` | instructions with labels |
//! | `records` | records in shared memory, and the code that writes one |
//! | `copied` | displaced instructions at their new place |
//! | `pieces` | parts of all trampolines |
//! | `trampoline` | trampolines of counts |
//! | `observer` | trampolines that record what an instruction does |
//! | `value` | the recorded value of an instruction |
//! | `timed` | times a load |
//! | `registers` | records the values of registers |

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
pub use marked::{EVENT, EVENTS, MOST_EVENTS, MOST_POLLS, POLLS};
pub use observer::{emit_observer, most};
pub use records::{PART, RECORD, RECORDS};
pub use timed::{MOST_BITS, MOST_TIMED, count, countdown};
pub use trampoline::{Patch, emit};
