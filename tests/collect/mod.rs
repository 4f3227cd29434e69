//! The live collector: against a scripted kernel, on made-up machines, and on the one at hand.

mod controlled;
mod counting;
mod coverage;
mod live;
mod refusals;
mod script;
mod shared;
mod targets;
mod time;

use crate::support::files::Folder;
use pmu::machine::{Machine, Root};
use tma::tables::Table;

/// A folder of `/proc` and `/sys` files, and the machine it describes.
pub fn machine(files: &[(&str, &str)]) -> Machine {
    let folder = Folder::new();
    for (path, text) in files {
        folder.write(path, text);
    }
    Machine::at(&Root::at(folder.path()))
}

/// Two CPUs, an Intel core PMU called `cpu`, no restrictions.
pub const INTEL: &[(&str, &str)] = &[
    (
        "proc/cpuinfo",
        "processor : 0\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 85\nstepping : 4\n\
         model name : Xeon\nflags : fpu tsc\n\nprocessor : 1\nmodel : 99\n",
    ),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/devices/system/cpu/cpu0/topology/core_id", "0\n"),
    ("sys/devices/system/cpu/cpu1/topology/core_id", "1\n"),
    ("sys/bus/event_source/devices/cpu/type", "4\n"),
    ("sys/bus/event_source/devices/cpu/format/event", "config:0-7\n"),
    ("sys/bus/event_source/devices/cpu/format/umask", "config:8-15\n"),
    ("proc/sys/kernel/perf_event_paranoid", "1\n"),
    ("proc/sys/kernel/nmi_watchdog", "0\n"),
    ("proc/sys/kernel/osrelease", "6.1.0\n"),
    ("proc/self/status", "CapEff:\t0000000000000000\nSeccomp:\t0\n"),
];

/// `INTEL` with some files more (or other).
pub fn intel(more: &[(&str, &str)]) -> Machine {
    let mut files = INTEL.to_vec();
    files.extend(more);
    machine(&files)
}

/// A table of events `e1` … `e12`; event n has code n. `e1` is the clock.
pub fn table(name: &str, pmu: &str) -> Table {
    parsed(name, pmu, "")
}

/// The same with these nodes.
pub fn table_of(nodes: &str) -> Table {
    parsed("t", "cpu", nodes)
}

fn parsed(name: &str, pmu: &str, nodes: &str) -> Table {
    let mut text = format!(
        "schema = 1\nname = \"{name}\"\ntitle = \"test\"\nvendor = \"any\"\npmu = \"{pmu}\"\n\
         source = []\nclocks = \"e01\"\npipeline = {{ width = 4 }}\n\
         counters = {{ general = 4, general_smt = 4, fixed = 0 }}\n[events]\n"
    );
    for n in 1..=12 {
        text.push_str(&format!("e{n:02} = {{ code = {n} }}\n"));
    }
    text.push_str(nodes);
    Table::parse(&text, "test").expect("a table")
}
