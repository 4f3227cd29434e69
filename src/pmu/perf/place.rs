//! Decides which groups are counted in which run, the tasks or CPUs on which every group is opened, and their
//! scopes; encodes events, ready to open.

use crate::kernel::{Handle, Kernel, Subject};
use crate::machine::{Encoding, encode};
use crate::{Aggregate, CorePlan, Request, Target};
use nix::errno::Errno;
use tma::error::{Error, Result};
use tma::quantity::Missing;
use tma::tables::{EventId, PmuKind, Table};

/// The groups of one run, for each kind of core: index of the plan's group and its events.
pub type Part = Vec<Vec<(usize, Vec<EventId>)>>;

/// All groups in one run, or each group in a run of its own.
pub fn parts(request: &Request<'_>) -> Vec<Part> {
    let all = |core: &CorePlan<'_>| core.groups.iter().cloned().enumerate().collect::<Vec<_>>();
    let whole: Part = request.cores.iter().map(all).collect();
    if request.multiplex {
        return vec![whole];
    }
    let mut parts = Vec::new();
    for (at, groups) in whole.iter().enumerate() {
        for group in groups {
            let mut part: Part = vec![Vec::new(); whole.len()];
            part[at].push(group.clone());
            parts.push(part);
        }
    }
    if parts.is_empty() { vec![whole] } else { parts }
}

/// A place at which groups are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// The tasks whose events count.
    pub subject: Subject,
    /// The CPU; `None` for tasks.
    pub cpu: Option<u32>,
    /// Index into [`Places::scopes`].
    pub scope: usize,
}

/// All places of a run.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The places.
    pub spots: Vec<Spot>,
    /// Name of each scope; `None` for the whole measurement.
    pub scopes: Vec<Option<String>>,
    /// Whole CPUs, not tasks.
    pub by_cpu: bool,
}

impl Places {
    /// Places of `request`; `command` is the process id of the prepared command.
    pub fn find(
        kernel: &mut dyn Kernel,
        request: &Request<'_>,
        command: Option<i32>,
    ) -> Result<Self> {
        match &request.target {
            Target::Command => Ok(Self::tasks(request, command.into_iter().collect())),
            Target::Thread(tid) => {
                let absent = |e| absent(format!("there is no thread {tid}"), e);
                kernel.threads(*tid).map_err(absent)?;
                Ok(Self::tasks(request, vec![*tid]))
            }
            Target::Process(pid) => {
                let absent = |e| absent(format!("there is no process {pid}"), e);
                let threads = kernel.threads(*pid).map_err(absent)?;
                Ok(Self::tasks(request, threads))
            }
            Target::System => {
                let cpus = request.machine.topology.cpus.iter().map(|c| c.id).collect();
                Ok(Self::cpus(request, Subject::AllTasks, cpus))
            }
            Target::Cpus(list) => {
                check_cpus(request, list)?;
                Ok(Self::cpus(request, Subject::AllTasks, list.clone()))
            }
            Target::Cgroup(folder) => {
                let group: Handle = kernel.open_cgroup(folder)?;
                let cpus = request.machine.topology.cpus.iter().map(|c| c.id).collect();
                Ok(Self::cpus(request, Subject::Cgroup(group), cpus))
            }
        }
    }

    fn tasks(request: &Request<'_>, tasks: Vec<i32>) -> Self {
        let mut places = Self::default();
        for task in tasks {
            let scope = match request.aggregate {
                Aggregate::Thread => Some(format!("tid {task}")),
                _ => None,
            };
            let scope = places.scope(scope);
            places.spots.push(Spot { subject: Subject::Task(task), cpu: None, scope });
        }
        places
    }

    fn cpus(request: &Request<'_>, subject: Subject, cpus: Vec<u32>) -> Self {
        let mut places = Self { by_cpu: true, ..Self::default() };
        let topology = &request.machine.topology;
        for cpu in cpus {
            let at = topology.cpu(cpu);
            let (socket, core) = at.map_or((0, cpu), |c| (c.socket, c.core));
            let label = match request.aggregate {
                Aggregate::All => None,
                Aggregate::Thread => Some(format!("cpu{cpu}")),
                Aggregate::Core if topology.sockets > 1 => {
                    Some(format!("socket{socket} core{core}"))
                }
                Aggregate::Core => Some(format!("core{core}")),
                Aggregate::Socket => Some(format!("socket{socket}")),
            };
            let scope = places.scope(label);
            places.spots.push(Spot { subject, cpu: Some(cpu), scope });
        }
        places
    }

    /// The index of the scope called `label`, new or known.
    fn scope(&mut self, label: Option<String>) -> usize {
        self.scopes.iter().position(|s| *s == label).unwrap_or_else(|| {
            self.scopes.push(label);
            self.scopes.len() - 1
        })
    }
}

fn absent(what: String, errno: Errno) -> Error {
    Error::failed(what).because(errno.desc()).hint("ps -eL lists processes and threads")
}

/// The error if all threads have ended or all CPUs are offline.
pub(super) fn nothing_left() -> Error {
    Error::failed("there is nothing to count on")
        .because("all its threads have ended, or all CPUs are offline")
        .hint("ps -eL lists processes and threads")
}

fn check_cpus(request: &Request<'_>, list: &[u32]) -> Result<()> {
    let topology = &request.machine.topology;
    match list.iter().find(|c| topology.cpu(**c).is_none()) {
        Some(cpu) => Err(Error::usage(format!("CPU {cpu} is not online"))
            .hint("cat /sys/devices/system/cpu/online")),
        None if list.is_empty() => Err(Error::usage("no CPU to count on")),
        None => Ok(()),
    }
}

/// An event ready to open.
#[derive(Debug, Clone, Copy)]
pub struct Coded {
    /// The event.
    pub id: EventId,
    /// Its encoding.
    pub encoding: Encoding,
    /// Whether it counts all threads of the core.
    pub any: bool,
}

pub(super) fn ids(part: &[Coded]) -> Vec<EventId> {
    part.iter().map(|e| e.id).collect()
}

/// The encoding of event `id`, or the reason why it has none.
pub fn code(
    table: &Table,
    id: EventId,
    pmu: &crate::machine::Pmu,
    smt: bool,
) -> std::result::Result<Coded, Missing> {
    let Some(event) = table.events.get(usize::from(id)) else {
        return Err(Missing::NotMeasured(format!("no event number {id} in {}", table.name).into()));
    };
    let name = &event.name;
    let outside = |what: &str| Missing::NotMeasured(format!("{name} {what}").into());
    match event.spec.pmu {
        PmuKind::Core => {}
        PmuKind::Tsc => return Err(outside("follows from the run's duration")),
        PmuKind::Power => return Err(outside("counts a whole socket's energy")),
        PmuKind::Uncore => return Err(outside("counts outside the cores")),
        PmuKind::Latency => return Err(outside("is known from precise samples only")),
        PmuKind::Abstract => return Err(outside("exists in no processor")),
    }
    // One thread counts its own share only; without SMT that is everything.
    if event.spec.percore && smt {
        return Err(outside("needs the sum over both threads of the core"));
    }
    let encoding = encode(&event.spec, pmu)
        .map_err(|why| Missing::NotSupported(format!("{name}: {why}").into()))?;
    Ok(Coded { id, encoding, any: event.spec.any })
}
