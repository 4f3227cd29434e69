//! The host and its processor.

use fleet::window::Host;
use pmu::machine::{Machine, boot_id};
use std::collections::BTreeMap;
use std::ffi::OsStr;

/// This host; its event table is not known yet.
pub(super) fn this(machine: &Machine, labels: &BTreeMap<String, String>) -> Host {
    let system = nix::sys::utsname::uname().ok();
    let text = |of: &OsStr| tma::text::name(&of.to_string_lossy()).into_owned();
    Host {
        name: system.as_ref().map(|of| text(of.nodename())).unwrap_or_default(),
        boot: boot_id(),
        uarch: None,
        processor: machine.cpu.name.clone(),
        kernel: system.as_ref().map(|of| text(of.release())).unwrap_or_default(),
        cpus: u32::try_from(machine.topology.cpus.len()).unwrap_or(u32::MAX),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        labels: labels.clone(),
    }
}
