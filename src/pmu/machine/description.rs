//! Everything read about the machine.

use super::cache::first_level;
use super::cpu::read_cpu;
use super::kernel::Kernel;
use super::kinds::{Kind, kinds, kinds_of};
use super::pmu::{Pmu, find_pmus};
use super::root::Root;
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
