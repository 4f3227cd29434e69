//! The program and its library as their users meet them: one binary, a folder for each subject.
//!
//! `support` has what all of them share: starting programs, files, terminals, and which tests may
//! run at once. Tests that need what a machine may lack say `skipped:` and why.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[macro_use]
mod support;

#[cfg(target_arch = "x86_64")]
mod applied;
#[cfg(target_arch = "x86_64")]
mod block;
#[cfg(target_arch = "x86_64")]
mod branches;
mod branches_inputs;
mod branches_tools;
#[cfg(target_arch = "x86_64")]
mod code;
mod collect;
mod deps;
mod doctor;
mod documents;
#[cfg(target_arch = "x86_64")]
mod fleet;
#[cfg(target_arch = "x86_64")]
mod fuzz;
mod import;
#[cfg(target_arch = "x86_64")]
mod interrupted;
mod lacking;
#[cfg(target_arch = "x86_64")]
mod loads;
mod machine;
#[cfg(target_arch = "x86_64")]
mod microbench;
mod mistakes;
#[cfg(target_arch = "x86_64")]
mod pgo;
mod pgo_formats;
mod pgo_inputs;
#[cfg(target_arch = "x86_64")]
mod pgo_try;
mod pgo_windows;
#[cfg(target_arch = "x86_64")]
mod prefetch;
#[cfg(target_arch = "x86_64")]
mod probe;
#[cfg(target_arch = "x86_64")]
mod processors;
mod profile;
mod record;
#[cfg(target_arch = "x86_64")]
mod regions;
mod report;
mod schedule;
mod session;
mod structure;
mod tables;
mod tui;
#[cfg(target_arch = "x86_64")]
mod untrusted;
#[cfg(target_arch = "x86_64")]
mod widths;
mod workload;
