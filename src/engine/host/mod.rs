//! A host measured for as long as the program runs, interval by interval, for metrics: all CPUs, and control groups
//! and commands beside.
//!
//! | file | concern |
//! |---|---|
//! | `meter` | measurements in threads, begun again when they end |
//! | `rows` | counts of an interval → rows of metrics |
//! | `sockets` | counts of sockets → those of the host |
//! | `modes` | CPU time by mode, of the host, its sockets and control groups |
//! | `commands` | processes by the name of their command |
//! | `estimates` | shares of saved estimates |

mod commands;
mod estimates;
mod meter;
mod modes;
mod rows;
mod sockets;

pub use commands::kept_name;
pub use meter::{HostAsk, Meter, Update};

use fleet::metrics::Cost;
use fleet::window::Host;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use nix::unistd::{SysconfVar, sysconf};
use pmu::machine::Machine;
use std::collections::BTreeMap;

/// More than any file of `/proc` that is read here has.
const LONGEST: u64 = 4 << 20;

/// A host and its processor; `uarch` is its table.
pub fn describe(machine: &Machine, uarch: Option<&str>) -> Host {
    let uname = nix::sys::utsname::uname().ok();
    let text = |s: &std::ffi::OsStr| s.to_string_lossy().into_owned();
    Host {
        name: uname.as_ref().map(|u| text(u.nodename())).unwrap_or_default(),
        boot: pmu::machine::boot_id(),
        uarch: uarch.map(str::to_owned),
        processor: machine.cpu.name.clone(),
        kernel: uname.as_ref().map(|u| text(u.release())).unwrap_or_default(),
        cpus: u32::try_from(machine.topology.cpus.len()).unwrap_or(u32::MAX),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        labels: BTreeMap::new(),
    }
}

/// What this process has used until now, if the kernel tells it.
pub fn own_cost() -> Option<Cost> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let microseconds = usage.user_time() + usage.system_time();
    let memory = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: f64 = memory.split_whitespace().nth(1)?.parse().ok()?;
    let page = sysconf(SysconfVar::PAGE_SIZE).ok()??;
    Some(Cost {
        cpu_seconds: microseconds.num_microseconds() as f64 * 1e-6,
        resident_bytes: pages * page as f64,
    })
}

/// Seconds of a tick of `/proc`.
fn tick() -> f64 {
    let ticks = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    1.0 / ticks.filter(|ticks| *ticks > 0).unwrap_or(100) as f64
}
