//! Probes as machine code: pure, from a site and addresses.

mod trampoline;

pub use trampoline::{Patch, emit};
