//! Initial values, pages and the address trace: what it takes to make a block runnable.
//!
//! | file | concern |
//! |---|---|
//! | `values`, `init` | what registers and memory hold when a run starts, and `--init` |
//! | `discover` | the values, pages and lines with which a block runs |
//! | `seek`, `climb`, `search`, `calm` | looking for them |
//! | `attempt`, `trace`, `failure` | one traced run, what it tells, why it failed |

#[cfg(target_arch = "x86_64")]
pub(crate) mod attempt;
#[cfg(target_arch = "x86_64")]
pub(crate) mod calm;
#[cfg(target_arch = "x86_64")]
pub(crate) mod climb;
#[cfg(target_arch = "x86_64")]
pub(crate) mod discover;
#[cfg(target_arch = "x86_64")]
pub(crate) mod failure;
pub(crate) mod init;
#[cfg(target_arch = "x86_64")]
pub(crate) mod run_setup;
#[cfg(target_arch = "x86_64")]
pub(crate) mod search;
#[cfg(target_arch = "x86_64")]
pub(crate) mod seek;
#[cfg(target_arch = "x86_64")]
pub(crate) mod trace;
pub(crate) mod values;

pub use init::Init;
pub use values::Values;
