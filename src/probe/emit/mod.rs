//! Probes as machine code: pure, from a site and addresses.
//!
//! | file | concern |
//! |---|---|
//! | `pieces` | what all trampolines have |
//! | `trampoline` | those of counts |
//! | `observer` | those that record what an instruction does |

mod observer;
mod pieces;
mod trampoline;

pub use observer::{Observing, RECORD, RECORDS, emit_observer, most};
pub use trampoline::{Patch, emit};
