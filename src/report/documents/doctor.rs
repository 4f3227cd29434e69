//! Abilities of this machine, with causes and remedies for the rest, `tdtool.doctor/1`; which processor it is, by
//! which evidence, and what contradicts, `tdtool.identity/1`; measured facts of a core, beside what is stated of
//! it.

use pmu::machine::{Container, Finding, Kind as CoreKind, Machine, SeccompMode, TableMatch};
use serde::Serialize;
use tma::Result;
use tma::cpuid::Fingerprint;
use tma::identity::{Identity, Measured, identify, settle};
use tma::measured::{Fact, Kind};
use tma::self_test::Answers;
use tma::tables::{Library, Table};

/// The machine, its permissions, and a finding for each kind of measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Document {
    schema: &'static str,
    /// The processor's name; empty if unknown.
    pub processor: String,
    /// Its CPUID family, model and stepping, as vendors write them.
    pub signature: String,
    /// Sockets.
    pub sockets: usize,
    /// Cores per socket.
    pub cores_per_socket: usize,
    /// Online CPUs.
    pub cpus: usize,
    /// Whether SMT is on.
    pub smt: bool,
    /// Frequency of the time-stamp counter.
    pub tsc_hz: Option<f64>,
    /// Release of the Linux kernel.
    pub kernel: String,
    /// The hypervisor, in a virtual machine.
    pub virtual_machine: Option<String>,
    /// The kind of container, in one.
    pub container: Option<Container>,
    /// The tables of this processor: one, or one per kind of core.
    pub tables: Vec<TableInfo>,
    /// Which processor this is, by what, and what contradicts; for each kind of core.
    pub identity: Identities,
    /// The PMUs in sysfs.
    pub pmus: Vec<PmuInfo>,
    /// `kernel.perf_event_paranoid`.
    pub perf_event_paranoid: Option<i32>,
    /// Whether this process has CAP_PERFMON.
    pub cap_perfmon: bool,
    /// Filtering of system calls.
    pub seccomp: SeccompMode,
    /// Whether the NMI watchdog is on.
    pub nmi_watchdog: Option<bool>,
    /// Answers of the self-test; none where blocks cannot be measured.
    pub self_test: Option<Answers>,
    /// Facts of the core that were measured, now or earlier, beside what is stated of it; none were where it is empty.
    pub measured: Vec<FactRow>,
    /// Possible and impossible measurements, with cause and remedy.
    pub findings: Vec<Finding>,
}

/// A table of this processor.
#[derive(Debug, Clone, Serialize)]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// The processors it describes.
    pub title: String,
    /// The PMU it is for.
    pub pmu: Option<String>,
    /// General counters of a thread.
    pub general_counters: u32,
    /// Fixed counters.
    pub fixed_counters: u32,
    /// Levels that the top-down metrics of a fixed counter give; 0 without them.
    pub topdown_levels: u32,
}

/// A PMU of this machine.
#[derive(Debug, Clone, Serialize)]
pub struct PmuInfo {
    /// Its name in sysfs.
    pub name: String,
    /// Whether it is a core PMU.
    pub core: bool,
    /// CPUs it counts on.
    pub cpus: Option<usize>,
    /// How often the kernel rotates its groups.
    pub mux_interval_ms: Option<u32>,
}

impl Document {
    /// Document of `machine`, with its tables and findings.
    pub fn new(
        machine: &Machine,
        tables: Vec<TableInfo>,
        identity: Identities,
        findings: Vec<Finding>,
    ) -> Self {
        let (kernel, topology) = (&machine.kernel, &machine.topology);
        let pmus = machine.pmus.iter().map(|p| PmuInfo {
            name: p.name.clone(),
            core: p.is_core(),
            cpus: p.cpus.as_ref().map(Vec::len),
            mux_interval_ms: p.mux_interval_ms,
        });
        let hypervisor = kernel.virtual_machine.as_ref().map(|v| v.name.clone());
        Self {
            schema: "tdtool.doctor/1",
            processor: machine.cpu.name.clone(),
            signature: machine.cpu.signature(),
            sockets: topology.sockets,
            cores_per_socket: topology.cores_per_socket,
            cpus: topology.cpus.len(),
            smt: topology.smt,
            tsc_hz: machine.tsc_hz,
            kernel: kernel.release.clone(),
            virtual_machine: hypervisor.map(|v| v.unwrap_or_else(|| "unnamed hypervisor".into())),
            container: kernel.container,
            tables,
            identity,
            pmus: pmus.collect(),
            perf_event_paranoid: kernel.paranoid,
            cap_perfmon: kernel.can_perfmon(),
            seccomp: kernel.seccomp,
            nmi_watchdog: kernel.nmi_watchdog,
            self_test: None,
            measured: Vec::new(),
            findings,
        }
    }
}

impl TableInfo {
    /// A table as it is used on `machine`.
    pub fn new(table: &Table, chosen: &TableMatch, machine: &Machine) -> Self {
        let counters = &table.counters;
        let smt = machine.topology.smt;
        Self {
            name: table.name.clone(),
            title: table.title.clone(),
            pmu: chosen.pmu.clone(),
            general_counters: if smt { counters.general_smt } else { counters.general },
            fixed_counters: counters.fixed,
            topdown_levels: counters.topdown_levels,
        }
    }
}

/// The identity of a processor: of its first kind of core, and of each.
#[derive(Debug, Clone, Serialize)]
pub struct Identities {
    schema: &'static str,
    /// The first kind of core.
    #[serde(flatten)]
    pub identity: Identity,
    /// Each kind of core.
    pub cores: Vec<KindOfCore>,
    /// Whether a CPU may be moved between kinds at any time: what was read is of the moment.
    pub kinds_move: bool,
}

/// One kind of core.
#[derive(Debug, Clone, Serialize)]
pub struct KindOfCore {
    /// Its CPUs; empty where a dump of CPUID does not name them.
    pub cpus: Vec<u32>,
    /// Identity.
    #[serde(flatten)]
    pub identity: Identity,
    /// Its features, caches and brand.
    pub fingerprint: Option<Fingerprint>,
}

impl Identities {
    /// Lets rates of the self-test, of the first kind of core, decide what features left open.
    ///
    /// # Errors
    /// A candidate's table cannot be read.
    pub fn settle(&mut self, measured: Measured, library: &Library) -> Result<()> {
        self.identity = settle(std::mem::take(&mut self.identity), measured, library)?;
        if let Some(first) = self.cores.first_mut() {
            first.identity = self.identity.clone();
        }
        Ok(())
    }
}

/// Identifies the processor of `machine` with the tables of `library`.
///
/// # Errors
/// A table's head cannot be read.
pub fn identity(machine: &Machine, library: &Library) -> Result<Identities> {
    let core = |kind: &CoreKind| {
        Ok(KindOfCore {
            cpus: machine.cpus_of(kind),
            identity: identify(&kind.cpuid, library)?,
            fingerprint: Fingerprint::of(&kind.cpuid),
        })
    };
    let cores: Vec<KindOfCore> = machine.kinds.iter().map(core).collect::<Result<_>>()?;
    let identity = cores.first().map(|core| core.identity.clone()).unwrap_or_default();
    let kinds_move = machine.kinds_move();
    Ok(Identities { schema: "tdtool.identity/1", identity, cores, kinds_move })
}

/// How a measured fact and a stated one go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// Nothing is stated.
    OnlyMeasured,
    /// Not measured.
    Open,
    /// The stated value was measured, too (`doctor --toml`): agreement says nothing.
    SameOrigin,
    /// Within the error.
    Agrees,
    /// Less than stated, of a capacity: what filled it may have needed something else first.
    Less,
    /// The measured one is taken.
    Measured,
    /// The values differ, and nothing uses the measured one: other guests or a hypervisor may take part of a cache.
    Differs,
}

/// A fact in a report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactRow {
    /// Kind of the fact.
    pub kind: Kind,
    /// Its name, and the unit of its numbers.
    pub name: &'static str,
    /// See `name`.
    pub unit: &'static str,
    /// Measured value, or why there is none.
    #[serde(flatten)]
    pub fact: Fact,
    /// The stated value and its source.
    pub stated: Option<(f64, String)>,
    /// Agreement of both.
    pub agreement: Agreement,
    /// Users of the measured value in place of the stated one.
    pub wins_for: Vec<&'static str>,
}
