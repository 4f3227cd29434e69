//! A program of the user's while it runs: how often its blocks are entered, and what one of them has.
//!
//! | module | concern |
//! |---|---|
//! | [`bursts`] | what single instructions do, execution by execution |
//! | [`capture`] | registers, memory, trip count and path of a block at one of its entries |
//! | [`count`] | exact entry counts, by jumps patched into the running program |
//! | [`facts`] | what is known of the code that is patched |
//! | [`plan`] | where each block's count goes |
//! | [`regions`] | regions that the program marks: entries, nesting, times |
//! | [`emit`] | probes as machine code |
//! | `patch` | probes in the files that a command maps, whatever they are for |
//! | `process` | the process side: traced threads, breakpoints, memory and mappings |
//!
//! Needs no root for one's own processes: a command is traced from its first instruction (ptrace(2)).

#[cfg(target_arch = "x86_64")]
pub mod bursts;
pub mod capture;
#[cfg(target_arch = "x86_64")]
pub mod count;
pub mod emit;
pub mod facts;
#[cfg(target_arch = "x86_64")]
mod patch;
pub mod plan;
#[cfg(target_arch = "x86_64")]
mod process;
#[cfg(target_arch = "x86_64")]
pub mod regions;
