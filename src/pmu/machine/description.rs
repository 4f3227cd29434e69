//! Reads everything about the machine: the processor's identity from `/proc/cpuinfo` (the kernel's reading of
//! CPUID), its first-level caches, and the rest through the other files here.

use super::Root;
use super::kernel::Kernel;
use super::kinds::{Kind, kinds, kinds_of};
use super::pmu::{Pmu, find_pmus};
use super::topology::Topology;
use tma::cpuid::{CacheLevel, Dump, Fingerprint};
use tma::identity::{Identity, identify};
use tma::tables::{Const, Library};
use tma::{Cache, Cpu, Result};

/// The machine.
///
/// ```
/// use pmu::machine::{Level, Machine, findings};
/// use pmu::perf::probe;
///
/// // Works everywhere; what this machine cannot count is a finding with a remedy, not an error.
/// let machine = Machine::detect();
/// assert!(machine.topology.cpus.len() >= machine.topology.sockets);
///
/// let found = findings(&machine, &[], &probe(&machine));
/// let core_pmu = found.iter().find(|finding| finding.id == "core_pmu").expect("always there");
/// if machine.core_pmus().next().is_none() {
///     assert_eq!(core_pmu.level, Level::Blocked);
/// }
/// assert!(found.iter().all(|finding| finding.level == Level::Ok || finding.remedy.is_some()));
/// ```
#[derive(Debug, Clone)]
pub struct Machine {
    /// The processor as CPUID and the kernel name it.
    pub cpu: Cpu,
    /// CPUID leaves, for each kind of core.
    pub kinds: Vec<Kind>,
    /// Online CPUs, cores, sockets, SMT.
    pub topology: Topology,
    /// PMUs registered with the kernel, by name.
    pub pmus: Vec<Pmu>,
    /// Kernel permissions of this process.
    pub kernel: Kernel,
    /// The first-level caches of data and of code, if the kernel lists them.
    pub l1: (Option<Cache>, Option<Cache>),
    /// Frequency of the time stamp counter in hertz, if known.
    pub tsc_hz: Option<f64>,
    /// Whether `kinds` are those of a dump, not of this machine's CPUs.
    is_believed: bool,
}

impl Machine {
    /// The machine whose `/proc` and `/sys` lie below `root`.
    pub fn at(root: &Root) -> Self {
        let cpu = read_cpu(root);
        let kernel = Kernel::read(root, cpu.has_flag("hypervisor"));
        Self {
            kinds: kinds(root, &cpu),
            l1: first_level(root),
            topology: Topology::read(root),
            pmus: find_pmus(root),
            kernel,
            cpu,
            tsc_hz: None,
            is_believed: false,
        }
    }

    /// This machine, taken for the processor of a dump: its identity, features and caches are believed
    /// instead of what CPUID answers here.
    #[must_use]
    pub fn believing(mut self, dumps: &[Dump]) -> Self {
        self.kinds = kinds_of(dumps);
        self.is_believed = true;
        if let Some(Kind { cpuid, .. }) = self.kinds.first() {
            self.cpu = Cpu { flags: self.cpu.flags, ..cpuid.cpu() };
            self.l1 = (cpuid.cache(CacheLevel::L1Data), cpuid.cache(CacheLevel::L1Code));
        }
        self
    }

    /// Which tables describe it, for each kind of core.
    ///
    /// # Errors
    /// A table's head cannot be read.
    pub fn identities(&self, library: &Library) -> Result<Vec<Identity>> {
        self.kinds.iter().map(|kind| identify(&kind.cpuid, library)).collect()
    }

    /// The CPUs of a kind of core: all where all are alike, none where they are of a dump that does not name them.
    pub fn cpus_of(&self, kind: &Kind) -> Vec<u32> {
        match self.kinds.len() == 1 && kind.cpus.is_empty() && !self.is_believed {
            true => self.topology.cpus.iter().map(|cpu| cpu.id).collect(),
            false => kind.cpus.clone(),
        }
    }

    /// Features, caches and brand of its first kind of core; none where CPUID was not asked.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        Fingerprint::of(&self.kinds.first()?.cpuid)
    }

    /// Whether a CPU may be moved between kinds of core at any time: those of a hybrid's guest.
    pub fn kinds_move(&self) -> bool {
        self.kinds.iter().any(|kind| kind.cpuid.is_virtual() && kind.cpuid.is_hybrid())
    }

    /// The PMU called `name`.
    pub fn pmu(&self, name: &str) -> Option<&Pmu> {
        self.pmus.iter().find(|p| p.name == name)
    }

    /// Core PMUs: `cpu`, or `cpu_core` and `cpu_atom` on hybrids.
    pub fn core_pmus(&self) -> impl Iterator<Item = &Pmu> {
        self.pmus.iter().filter(|p| p.is_core())
    }

    /// Whether this is a virtual machine.
    pub fn is_virtual(&self) -> bool {
        self.kernel.virtual_machine.is_some()
    }

    /// The constants of a run on this machine that took `wall_ms` milliseconds, in the order of
    /// [`Const::ALL`].
    pub fn constants(&self, wall_ms: f64) -> [Option<f64>; 5] {
        let mut all = [None; 5];
        all[Const::SmtOn.index()] = Some(f64::from(u8::from(self.topology.smt)));
        all[Const::DurationMs.index()] = Some(wall_ms);
        all[Const::TscHz.index()] = self.tsc_hz;
        all[Const::Sockets.index()] = Some(self.topology.sockets as f64);
        all[Const::CoresPerSocket.index()] = Some(self.topology.cores_per_socket as f64);
        all
    }
}

/// The processor that this runs on, as far as `/proc/cpuinfo` has it.
pub fn this_cpu() -> Cpu {
    read_cpu(&Root::system())
}

/// Reads the first processor of `/proc/cpuinfo`.
pub fn read_cpu(root: &Root) -> Cpu {
    let mut cpu = Cpu::default();
    for line in root.paragraph("proc/cpuinfo") {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        let number = || value.parse().unwrap_or(0);
        match key.trim() {
            "vendor_id" => cpu.vendor = value.to_owned(),
            "cpu family" => cpu.family = number(),
            "model" => cpu.model = number(),
            "stepping" => cpu.stepping = number(),
            "model name" => cpu.name = value.to_owned(),
            "flags" => cpu.flags = value.split_whitespace().map(str::to_owned).collect(),
            _ => {}
        }
    }
    cpu
}

/// The frequency of the time stamp counter from CPUID leaf 0x15 (or 0x16 if the crystal
/// clock is missing; Intel SDM vol. 3, "Time-Stamp Counter"), or from the hypervisor's timing leaf
/// 0x40000010; `None` if none of them is given.
pub fn tsc_hz_from_cpuid() -> Option<f64> {
    #[cfg(target_arch = "x86_64")]
    {
        let id = raw_cpuid::CpuId::new();
        if let Some(hz) = id.get_tsc_info().and_then(|t| t.tsc_frequency()) {
            return Some(hz as f64);
        }
        if let Some(khz) = id.get_hypervisor_info().and_then(|h| h.tsc_frequency()) {
            return Some(f64::from(khz) * 1e3);
        }
        let intel = id.get_vendor_info().is_some_and(|v| v.as_str() == "GenuineIntel");
        let base = id.get_processor_frequency_info().map(|f| f.processor_base_frequency());
        base.filter(|mhz| intel && *mhz > 0).map(|mhz| f64::from(mhz) * 1e6)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Code and unit mask of Intel's architectural events that this processor says it does not have
/// (CPUID leaf 0xA, EBX; Intel SDM vol. 3, "Pre-Defined Architectural Performance Events").
pub fn absent_architectural_events() -> Vec<(u32, u32)> {
    #[cfg(target_arch = "x86_64")]
    {
        let leaf = raw_cpuid::CpuId::new().get_performance_monitoring_info();
        // Version 0: CPUID does not list the events.
        let Some(leaf) = leaf.filter(|leaf| leaf.version_id() > 0) else { return Vec::new() };
        let events = [
            ((0x3c, 0), leaf.is_core_cyc_ev_unavailable()),
            ((0xc0, 0), leaf.is_inst_ret_ev_unavailable()),
            ((0x2e, 0x4f), leaf.is_cache_ref_ev_unavailable()),
            ((0x2e, 0x41), leaf.is_ll_cache_miss_ev_unavailable()),
            ((0xc4, 0), leaf.is_branch_inst_ret_ev_unavailable()),
            ((0xc5, 0), leaf.is_branch_midpred_ev_unavailable()),
        ];
        events.into_iter().filter(|(_, absent)| *absent).map(|(event, _)| event).collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

/// The first-level caches of data and of code.
pub(super) fn first_level(root: &Root) -> (Option<Cache>, Option<Cache>) {
    (cache(root, "Data"), cache(root, "Instruction"))
}

/// The first-level cache of a kind (`Data`, `Instruction`) of CPU 0.
fn cache(root: &Root, kind: &str) -> Option<Cache> {
    let folders = (0..8).map(|i| format!("sys/devices/system/cpu/cpu0/cache/index{i}"));
    for folder in folders {
        let is = |file: &str, value: &str| {
            root.text(format!("{folder}/{file}")).is_some_and(|text| text == value)
        };
        let number = |file: &str| root.number::<usize>(format!("{folder}/{file}"));
        if is("level", "1")
            && is("type", kind)
            && let (Some(ways), Some(sets)) =
                (number("ways_of_associativity"), number("number_of_sets"))
            && ways > 0
            && sets > 0
        {
            return Some(Cache { ways, sets });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_read_by_kind_and_level() {
        let folder = tempfile::tempdir().unwrap();
        let write = |index: usize, file: &str, text: &str| {
            let place =
                folder.path().join(format!("sys/devices/system/cpu/cpu0/cache/index{index}"));
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join(file), format!("{text}\n")).unwrap();
        };
        for (index, kind, ways) in [(0, "Data", "12"), (1, "Instruction", "8")] {
            write(index, "level", "1");
            write(index, "type", kind);
            write(index, "ways_of_associativity", ways);
            write(index, "number_of_sets", "64");
        }
        let root = Root::at(folder.path());
        assert_eq!(cache(&root, "Data"), Some(Cache { ways: 12, sets: 64 }));
        assert_eq!(cache(&root, "Instruction").map(Cache::bytes), Some(32 * 1024));
        let nothing = Root::at(folder.path().join("absent"));
        assert_eq!(cache(&nothing, "Data"), None);
    }
}
