//! Probes as machine code: pure, from a site and addresses.
//!
//! | file | concern |
//! |---|---|
//! | `pieces` | parts of all trampolines: labels, records in shared memory |
//! | `trampoline` | trampolines of counts; displaced instructions at their new place |
//! | `observer` | trampolines that record what an instruction does |
//! | `values` | recorded values of an instruction and of registers, and times of a load |
//! | `logs` | logs the results of an allocator, and markers |

mod logs;
mod observer;
mod pieces;
mod trampoline;
mod values;

pub use logs::{ENTRIES, ENTRY, EVENT, EVENTS, LIMIT, LOG, LOGGED, MOST_EVENTS, MOST_POLLS, POLLS};
pub use observer::{emit_observer, most};
pub use pieces::{PART, RECORD, RECORDS};
pub use trampoline::{Patch, emit};
pub use values::{MOST_BITS, MOST_TIMED, count, countdown};
