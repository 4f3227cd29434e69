//! The processor at hand, for expectations that are published of some and not of others.

use super::files::{Folder, root};
use pmu::machine::{Root, read_cpu};
use std::path::PathBuf;

/// Kinds of cores that tests have figures of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Core {
    /// Of this generation of AMD's.
    Zen(u8),
    /// Skylake, Cascade Lake and their like.
    Skylake,
    /// Ice Lake and Rocket Lake.
    SunnyCove,
    /// Alder Lake's and Raptor Lake's P cores, Sapphire Rapids, Emerald Rapids.
    GoldenCove,
}

/// The kind of this machine's cores, if it is one of those.
pub fn core() -> Option<Core> {
    let cpu = read_cpu(&Root::system());
    match (cpu.vendor.as_str(), cpu.family, cpu.model) {
        ("AuthenticAMD", 0x17, 0x00..=0x2f) => Some(Core::Zen(1)),
        ("AuthenticAMD", 0x17, _) => Some(Core::Zen(2)),
        ("AuthenticAMD", 0x19, 0x00..=0x0f | 0x20..=0x5f) => Some(Core::Zen(3)),
        ("AuthenticAMD", 0x19, 0x10..=0x1f | 0x60..=0xaf) => Some(Core::Zen(4)),
        ("AuthenticAMD", 0x1a, _) => Some(Core::Zen(5)),
        ("GenuineIntel", 6, 0x4e | 0x5e | 0x55 | 0x8e | 0x9e | 0xa5 | 0xa6) => Some(Core::Skylake),
        ("GenuineIntel", 6, 0x6a | 0x6c | 0x7d | 0x7e | 0xa7) => Some(Core::SunnyCove),
        ("GenuineIntel", 6, 0x8f | 0x97 | 0x9a | 0xb7 | 0xba | 0xbf | 0xcf) => {
            Some(Core::GoldenCove)
        }
        _ => None,
    }
}

/// Whether it is one of Intel's.
pub fn is_intel() -> bool {
    read_cpu(&Root::system()).vendor == "GenuineIntel"
}

/// The description of a core that a shipped table has; of `None` nothing is known.
pub fn described(uarch: Option<&str>) -> tma::Core {
    uarch.map_or_else(tma::Core::default, |name| {
        tma::Core::modelled(&events::library(), name).expect("a shipped table")
    })
}

/// The CPUID registers of other processors, by their names.
pub fn cpuid_dumps() -> PathBuf {
    root().join("tests/processors/cpuid/dumps.csv")
}

/// Those of one of them, as a file for `--cpuid`.
pub fn cpuid_dump(folder: &Folder, processor: &str) -> String {
    let all = std::fs::read_to_string(cpuid_dumps()).unwrap();
    let rows = all.lines().filter_map(|line| {
        let (name, row) = line.split_once(',')?;
        name.contains(processor).then_some(row)
    });
    let text: Vec<&str> = rows.collect();
    assert!(!text.is_empty(), "{processor}");
    folder.write("dump.csv", text.join("\n"))
}
