//! Makes a block runnable: initial values, mapped pages and an address trace.
//!
//! | file | concern |
//! |---|---|
//! | `values`, `init` | initial contents of registers and memory, and `--init` |
//! | `snapshot` | registers and memory of a running program |
//! | `discover`, `run_setup` | entry points of the search, and its result |
//! | `value_search` | the order in which values are tried |
//! | `hill_climbing`, `proposals` | one change at a time, by what the failing instruction depends on |
//! | `cache_fit` | values that keep a runnable block within the L1 data cache |
//! | `traced_run`, `completed_run` | one traced run, and what it shows |
//! | `slots`, `stored` | the registers that are traced, and their values around an instruction |
//! | `masks` | what masked accesses leave out, and the pages they may access |
//! | `trace`, `failure` | memory accesses of a run, why it failed |

#[cfg(target_arch = "x86_64")]
pub(crate) mod cache_fit;
#[cfg(target_arch = "x86_64")]
pub(crate) mod completed_run;
#[cfg(target_arch = "x86_64")]
pub(crate) mod discover;
#[cfg(target_arch = "x86_64")]
pub(crate) mod failure;
#[cfg(target_arch = "x86_64")]
pub(crate) mod hill_climbing;
pub(crate) mod init;
#[cfg(target_arch = "x86_64")]
pub(crate) mod masks;
#[cfg(target_arch = "x86_64")]
pub(crate) mod proposals;
#[cfg(target_arch = "x86_64")]
pub(crate) mod run_setup;
pub(crate) mod slots;
pub(crate) mod snapshot;
#[cfg(target_arch = "x86_64")]
pub(crate) mod stored;
#[cfg(target_arch = "x86_64")]
pub(crate) mod trace;
#[cfg(target_arch = "x86_64")]
pub(crate) mod traced_run;
#[cfg(target_arch = "x86_64")]
pub(crate) mod value_search;
pub(crate) mod values;

pub use init::Init;
pub use snapshot::{LoopPath, Snapshot};
pub use values::Values;
