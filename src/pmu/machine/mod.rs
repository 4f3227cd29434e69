//! The processor, its PMUs, what the kernel permits, and the remedy where it does not.
//!
//! Everything is read from `/proc` and `/sys` below a [`Root`], so tests run on fixture trees.
//! Nothing here prints or decides what to measure. No perf event is opened.
//!
//! | file | concern |
//! |---|---|
//! | `root` | files below a root folder |
//! | `cpu` | the processor as CPUID and the kernel name it |
//! | `kinds` | what CPUID answers on each kind of core |
//! | `topology` | online CPUs, cores, sockets, SMT |
//! | `cache` | the first-level caches |
//! | `pmu`, `encode` | PMUs and their formats; the encoding of an event |
//! | `kernel` | what the kernel permits, and where it runs |
//! | `description` | [`Machine`]: all of that |
//! | `matching`, `core` | the table of this processor; its [`tma::Core`] |
//! | `load` | how busy CPUs are |
//! | `finding` | what prevents or limits a measurement, with the remedy |

mod cache;
mod core;
mod cpu;
mod description;
mod encode;
mod finding;
mod kernel;
mod kinds;
mod load;
mod matching;
mod pmu;
mod root;
mod topology;

pub use cpu::{absent_architectural_events, read_cpu, this_cpu, tsc_hz_from_cpuid};
pub use description::Machine;
pub use encode::{Encoding, NoEncoding, encode};
pub use finding::{Finding, Level, Probe, UNKNOWN, findings};
pub use kernel::{Container, Kernel, SeccompMode, Virtual, boot_id};
pub use kinds::{Kind, kinds_of};
pub(crate) use load::cpu_time;
pub use load::{Load, Moment, Ticks};
pub use matching::{TableMatch, choose, countable, describing, is_architectural, unknown_model};
pub use pmu::{Format, Pmu, find_pmus};
pub use root::Root;
pub use topology::{LogicalCpu, Topology, parse_cpu_list, same_kind};
