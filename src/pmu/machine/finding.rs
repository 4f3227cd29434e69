//! Finds which measurements are possible on this machine; for the others the reason and the exact remedy.

use super::kernel::lowered_to;
use super::matching::{TableMatch, is_architectural};
use super::{Machine, SeccompMode};
use serde::Serialize;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Possible.
    Ok,
    /// Possible, with a restriction.
    Limited,
    /// Not possible.
    Blocked,
}

/// Limits of counting on a processor without a table.
pub const UNKNOWN: &str = "no event table describes this processor: only architectural events \
     (cycles, instructions, branches, misses) are counted, without a top-down tree";

/// One thing a person may want to measure, and whether it is possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable name, for scripts.
    pub id: &'static str,
    /// Its severity.
    pub level: Level,
    /// The finding, in one sentence without a full stop.
    pub what: String,
    /// Why it is not fully possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The remedy, with commands to type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Whether it is that there is no core PMU.
    #[serde(skip)]
    pub no_pmu: bool,
    /// Evidence for the finding, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

/// The result of opening perf events: `Err` has the `errno`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// A software event on this process.
    pub software: Result<(), i32>,
    /// The core clock on this process, if a core PMU exists.
    pub core: Option<Result<(), i32>>,
    /// Whether a group read sums the counts of inherited children.
    pub inherit_groups: bool,
}

impl Finding {
    /// One without cause, remedy and evidence.
    pub fn new(id: &'static str, level: Level, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { id, level, what, cause: None, remedy: None, no_pmu: false, evidence: Vec::new() }
    }

    fn ok(id: &'static str, what: impl Into<String>) -> Self {
        Self::new(id, Level::Ok, what)
    }

    fn but(
        id: &'static str,
        level: Level,
        what: impl Into<String>,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (cause, remedy) = (Some(cause.into()), Some(remedy.into()));
        Self { cause, remedy, ..Self::new(id, level, what) }
    }
}

/// All findings about measuring on `machine` with `tables`.
pub fn findings(machine: &Machine, tables: &[TableMatch], probe: &Probe) -> Vec<Finding> {
    let mut all = vec![table(machine, tables), core_pmu(machine, probe)];
    all.push(software(machine, probe));
    if probe.software.is_ok() {
        all.push(kernel_mode(machine));
        all.push(whole_system(machine));
    }
    all.extend(watchdog(machine, tables));
    if probe.software.is_ok() && !probe.inherit_groups {
        all.push(Finding::but(
            "inherit",
            Level::Limited,
            "groups of a command with child processes are read event by event",
            "this kernel (before 4.13) does not sum children in group reads",
            "use a newer kernel, or --no-inherit",
        ));
    }
    all
}

fn table(machine: &Machine, tables: &[TableMatch]) -> Finding {
    if tables.is_empty() {
        return Finding::but(
            "table",
            Level::Blocked,
            "no event table describes this processor",
            machine.cpu.signature(),
            "`tdtool tables list`, then --uarch NAME with the nearest relative, or --tables DIR \
             with a table of your own",
        );
    }
    if tables.iter().any(|t| is_architectural(&t.table)) {
        return Finding::but(
            "table",
            Level::Limited,
            UNKNOWN,
            machine.cpu.signature(),
            "`tdtool tables list`, then --uarch NAME with the nearest relative, or --tables DIR \
             with a table of your own",
        );
    }
    let names: Vec<&str> = tables.iter().map(|t| t.table.as_str()).collect();
    Finding::ok("table", format!("event table {}", names.join(" and ")))
}

fn core_pmu(machine: &Machine, probe: &Probe) -> Finding {
    let names: Vec<&str> = machine.core_pmus().map(|p| p.name.as_str()).collect();
    match (names.is_empty(), probe.core) {
        (false, Some(Ok(())) | None) => {
            Finding::ok("core_pmu", format!("core PMU {} can be counted", names.join(" and ")))
        }
        (false, Some(Err(errno))) => refused(machine, "core_pmu", "the core PMU", errno),
        (true, _) => no_core_pmu(machine),
    }
}

/// No PMU: in a virtual machine the host decides; otherwise the kernel or the firmware.
pub(super) fn no_core_pmu(machine: &Machine) -> Finding {
    let (cause, remedy) = match &machine.kernel.virtual_machine {
        Some(vm) => {
            let name = vm.name.as_deref().map(|n| format!(" ({n})")).unwrap_or_default();
            (
                format!("this virtual machine{name} is not given a PMU by its host"),
                "give the guest a virtual PMU on the host, or measure on the host itself:\n\
                 QEMU/KVM: -cpu host,pmu=on\n\
                 libvirt: <features><pmu state='on'/></features>\n\
                 VMware: vpmc.enable = \"TRUE\"\n\
                 EC2: a .metal or whole-socket instance",
            )
        }
        None => (
            "the kernel has registered none (/sys/bus/event_source/devices has no cpu, cpu_core or \
             cpu_atom)"
                .to_owned(),
            "dmesg | grep -i 'performance events' shows why; look for a PMU disabled in the \
             firmware or a kernel command line with nopmu",
        ),
    };
    let what = "top-down nodes cannot be measured: no core PMU";
    Finding { no_pmu: true, ..Finding::but("core_pmu", Level::Blocked, what, cause, remedy) }
}

fn software(machine: &Machine, probe: &Probe) -> Finding {
    match probe.software {
        Ok(()) => Finding::ok("software", "software counts (task clock, switches, faults)"),
        Err(errno) => refused(machine, "software", "perf events of any kind", errno),
    }
}

fn refused(machine: &Machine, id: &'static str, what: &str, errno: i32) -> Finding {
    let what = format!("{what} cannot be opened");
    match errno {
        libc::EACCES | libc::EPERM => {
            let (cause, remedy) = machine.kernel.why_denied();
            Finding::but(id, Level::Blocked, what, cause, remedy)
        }
        libc::ENOSYS => {
            let remedy = if machine.kernel.seccomp == SeccompMode::Off {
                "use a kernel built with CONFIG_PERF_EVENTS=y"
            } else {
                machine.kernel.seccomp_remedy()
            };
            Finding::but(
                id,
                Level::Blocked,
                what,
                "the system call perf_event_open is missing",
                remedy,
            )
        }
        other => {
            let cause = std::io::Error::from_raw_os_error(other).to_string();
            Finding::but(id, Level::Blocked, what, cause, "see dmesg | tail")
        }
    }
}

fn kernel_mode(machine: &Machine) -> Finding {
    if machine.kernel.may_count_kernel() {
        return Finding::ok("kernel_mode", "user and kernel mode");
    }
    let (cause, _) = machine.kernel.why_denied();
    let remedy = lowered_to(1);
    Finding::but(
        "kernel_mode",
        Level::Limited,
        "kernel mode is not counted: every figure is user mode only",
        cause,
        remedy,
    )
}

fn whole_system(machine: &Machine) -> Finding {
    if machine.kernel.may_count_cpus() {
        return Finding::ok("system", "whole CPUs (-a, -C, --cgroup) as well as processes");
    }
    let (cause, remedy) = machine.kernel.why_no_cpus();
    Finding::but(
        "system",
        Level::Limited,
        "whole CPUs (-a, -C, --cgroup) cannot be counted; processes of your own can",
        cause,
        remedy,
    )
}

fn watchdog(machine: &Machine, tables: &[TableMatch]) -> Option<Finding> {
    let counted = tables.iter().any(|t| t.pmu.is_some());
    (counted && machine.kernel.nmi_watchdog == Some(true)).then(|| {
        Finding::but(
            "nmi_watchdog",
            Level::Limited,
            "one counter fewer for the groups",
            "the NMI watchdog holds a counter on every CPU",
            "sudo sysctl kernel.nmi_watchdog=0",
        )
    })
}
