//! Probes a running program: block entry counts and captured state.
//!
//! | module | concern |
//! |---|---|
//! | [`bursts`] | records of each execution of single instructions |
//! | [`capture`] | registers, memory, trip count and path of a block at one of its entries |
//! | [`count`] | exact entry counts, by jumps patched into the running program |
//! | [`facts`] | analysis of the code to be patched |
//! | [`flow`](mod@flow) | the flow through a function after its run: counts of all blocks and edges |
//! | [`plan`] | places of probes |
//! | [`regions`] | marked regions: entries, nesting, times |
//! | [`emit`] | probes as machine code |
//! | `patch` | probes in the files of a process |
//! | `process` | traced threads, breakpoints, memory and mappings |
//!
//! Needs no root for one's own processes: a command is traced from its first instruction (ptrace(2)).

#[cfg(target_arch = "x86_64")]
pub mod bursts;
pub mod capture;
#[cfg(target_arch = "x86_64")]
pub mod count;
pub mod emit;
pub mod facts;
pub mod flow;
#[cfg(target_arch = "x86_64")]
mod patch;
pub mod plan;
#[cfg(target_arch = "x86_64")]
mod process;
#[cfg(target_arch = "x86_64")]
pub mod regions;
