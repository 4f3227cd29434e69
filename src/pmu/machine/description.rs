//! Everything read about the machine.

use super::cache::first_level;
use super::cpu::read_cpu;
use super::kernel::Kernel;
use super::pmu::{Pmu, find_pmus};
use super::root::Root;
use super::topology::Topology;
use tma::tables::Const;
use tma::{Cache, Cpu};

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
    /// Online CPUs, cores, sockets, SMT.
    pub topology: Topology,
    /// PMUs registered with the kernel, by name.
    pub pmus: Vec<Pmu>,
    /// What the kernel permits this process.
    pub kernel: Kernel,
    /// The first-level caches of data and of code, if the kernel lists them.
    pub l1: (Option<Cache>, Option<Cache>),
    /// Frequency of the time stamp counter in hertz, if known.
    pub tsc_hz: Option<f64>,
}

impl Machine {
    /// The machine whose `/proc` and `/sys` lie below `root`.
    pub fn at(root: &Root) -> Self {
        let cpu = read_cpu(root);
        let kernel = Kernel::read(root, cpu.has_flag("hypervisor"));
        Self {
            l1: first_level(root),
            topology: Topology::read(root),
            pmus: find_pmus(root),
            kernel,
            cpu,
            tsc_hz: None,
        }
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
