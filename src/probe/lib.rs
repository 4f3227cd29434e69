//! A program of the user's, stopped at a block while it runs.
//!
//! | module | concern |
//! |---|---|
//! | [`capture`] | registers, memory, trip count and path of a block at one of its entries |
//! | `process` | the process side: traced threads, breakpoints, memory and mappings |
//!
//! Needs no root for one's own processes: a command is traced from its first instruction (ptrace(2)).

pub mod capture;
#[cfg(target_arch = "x86_64")]
mod process;
