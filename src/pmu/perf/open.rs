//! Opening groups, with a fallback for every refusal.
//!
//! | the kernel answers | then |
//! |---|---|
//! | EACCES, EPERM | open everything again in user mode only; if that fails, the reason is reported |
//! | EINVAL on a member that opens alone | the group is split there ("weak group"), with a note |
//! | EINVAL, ENOENT, EOPNOTSUPP on an event alone | that event is missing with the reason |
//! | EMFILE | the limit on open files is raised; if that fails, an error with the number needed |
//! | ENODEV, ESRCH, also on a dummy event | the CPU is offline or the thread has ended: omitted, with a note |
//! | anything else at one place | the group is missing in that place's scope, with the reason |
//! | the group opens but never gets a counter | it is split: other programs hold counters |

use super::opened::{OpenGroup, Opened};
use super::place::{Places, Spot};
use super::run::Run;
use super::software_event::DUMMY;
use crate::kernel::{Event, Handle, Subject};
use crate::machine::{Encoding, encode};
use nix::errno::Errno;
use tma::error::{Error, Result};
use tma::quantity::Missing;
use tma::tables::{EventId, PmuKind, Table};

/// Why opening stopped.
pub(super) enum Stop {
    Denied,
    Fatal(Error),
}

/// Result of opening a group at one place.
pub(super) enum Placed {
    /// Open, leader first.
    Open(Vec<Handle>),
    /// The thread has ended or the CPU is offline.
    Absent,
    /// The kernel refuses this event there.
    Refused(EventId, Errno),
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

impl Run<'_, '_> {
    /// Opens all groups of this run at `places`.
    pub(super) fn open_all(&mut self, places: &Places) -> Result<Opened> {
        let mut user_only = self.request.user_only;
        loop {
            let mut opened = Opened { user_only, ..Opened::default() };
            match self.try_open(places, &mut opened) {
                Ok(()) => {
                    opened.note_absent();
                    return Ok(opened);
                }
                Err(Stop::Fatal(error)) => {
                    self.close_all(&opened);
                    return Err(error);
                }
                Err(Stop::Denied) => self.close_all(&opened),
            }
            if user_only {
                return Ok(self.all_denied());
            }
            user_only = true;
        }
    }

    fn all_denied(&self) -> Opened {
        let why = self.request.machine.kernel.why_denied().0;
        let mut opened = Opened { user_only: true, ..Opened::default() };
        for (core, groups) in self.part.iter().enumerate() {
            for (_, events) in groups {
                let why = Missing::NotPermitted(why.clone());
                opened.missing.push((core, events.clone(), why));
            }
            opened.references.push(None);
        }
        opened
    }

    fn try_open(&mut self, places: &Places, opened: &mut Opened) -> std::result::Result<(), Stop> {
        let (request, part) = (self.request, self.part);
        for (core, (plan, groups)) in request.cores.iter().zip(part).enumerate() {
            let pmu = plan.pmu.as_deref().and_then(|name| request.machine.pmu(name));
            let Some(pmu) = pmu else {
                let virtual_machine = request.machine.is_virtual();
                for (_, events) in groups {
                    let why = Missing::NoPmu { virtual_machine };
                    opened.missing.push((core, events.clone(), why));
                }
                opened.references.push(None);
                continue;
            };
            let cpus = pmu.cpus.as_deref();
            let here = |s: &&Spot| s.cpu.is_none_or(|c| cpus.is_none_or(|all| all.contains(&c)));
            let spots: Vec<Spot> = places.spots.iter().filter(here).copied().collect();
            for (_, events) in groups {
                let mut coded = Vec::new();
                for &id in events {
                    match code(plan.table, id, pmu, request.machine.topology.smt) {
                        Ok(event) => coded.push(event),
                        Err(why) => opened.miss(core, id, why),
                    }
                }
                self.open_group(core, &coded, &spots, cpus, opened)?;
            }
            let hybrid = request.machine.core_pmus().nth(1).is_some();
            let reference = match cpus {
                Some(cpus) if hybrid && !places.by_cpu => {
                    self.open_reference(core, &spots, cpus, opened)?
                }
                _ => None,
            };
            opened.references.push(reference);
        }
        Ok(())
    }

    /// Opens one group everywhere, in as many parts as the kernel and its counters require.
    fn open_group(
        &mut self,
        core: usize,
        events: &[Coded],
        spots: &[Spot],
        cpus: Option<&[u32]>,
        opened: &mut Opened,
    ) -> std::result::Result<(), Stop> {
        if spots.is_empty() {
            return Ok(());
        }
        let mut parts = self.split_by_kernel(core, events, spots, opened)?;
        if parts.len() > 1 {
            let (n, parts) = (events.len(), parts.len());
            opened.note(format!(
                "a group of {n} events is too large for this kernel and was opened in {parts} parts"
            ));
        }
        if self.split_starved(core, &mut parts, cpus, opened.user_only) {
            opened.note(
                "other programs hold counters (the NMI watchdog or another profiler): groups that \
                 never got one were split"
                    .into(),
            );
        }
        for part in parts {
            let group = self.open_everywhere(core, &part, spots, opened)?;
            opened.groups.push(group);
        }
        Ok(())
    }

    /// Opens a group that the kernel accepts at all places.
    fn open_everywhere(
        &mut self,
        core: usize,
        part: &[Coded],
        spots: &[Spot],
        opened: &mut Opened,
    ) -> std::result::Result<OpenGroup, Stop> {
        let mut group = OpenGroup::new(core, ids(part));
        for spot in spots {
            let placed = self.open_at(part, spot, opened.user_only);
            let placed = placed.and_then(|placed| match placed {
                Placed::Open(handles) => {
                    group.push(handles, spot.scope, &mut opened.width);
                    Ok(())
                }
                Placed::Absent => {
                    opened.omit(spot);
                    Ok(())
                }
                Placed::Refused(id, errno) => {
                    let why = self.reason(core, id, errno).map_err(Stop::Fatal)?;
                    group.refused.push((spot.scope, why));
                    Ok(())
                }
            });
            if let Err(stop) = placed {
                self.close_group(&group);
                return Err(stop);
            }
        }
        Ok(group)
    }

    /// Opens a group that the kernel is known to accept at one place.
    pub(super) fn open_at(
        &mut self,
        part: &[Coded],
        spot: &Spot,
        user_only: bool,
    ) -> std::result::Result<Placed, Stop> {
        let mut handles: Vec<Handle> = Vec::with_capacity(part.len());
        for event in part {
            match self.open_one(event, spot, handles.first().copied(), user_only) {
                Ok(handle) => handles.push(handle),
                Err(errno) => {
                    handles.into_iter().for_each(|h| self.kernel.close(h));
                    return match errno {
                        Errno::EACCES | Errno::EPERM => Err(Stop::Denied),
                        Errno::EMFILE | Errno::ENFILE => Err(Stop::Fatal(self.too_many())),
                        errno if self.is_absent(errno, spot, user_only) => Ok(Placed::Absent),
                        errno => Ok(Placed::Refused(event.id, errno)),
                    };
                }
            }
        }
        Ok(Placed::Open(handles))
    }

    /// Whether `errno` means that the thread has ended or the CPU is offline: then nothing can be opened
    /// there. Some PMUs refuse events with the same number.
    pub(super) fn is_absent(&mut self, errno: Errno, spot: &Spot, user_only: bool) -> bool {
        const ABSENT: [Errno; 2] = [Errno::ESRCH, Errno::ENODEV];
        let dummy = Coded { id: 0, encoding: DUMMY, any: false };
        ABSENT.contains(&errno)
            && match self.open_one(&dummy, spot, None, user_only) {
                Ok(handle) => {
                    self.kernel.close(handle);
                    false
                }
                Err(errno) => ABSENT.contains(&errno),
            }
    }

    /// The time of tasks on these CPUs: the running time of a dummy event bound to each CPU. It needs no
    /// counter, so it is never multiplexed.
    fn open_reference(
        &mut self,
        core: usize,
        spots: &[Spot],
        cpus: &[u32],
        opened: &mut Opened,
    ) -> std::result::Result<Option<OpenGroup>, Stop> {
        let mut group = OpenGroup::new(core, Vec::new());
        let dummy = [Coded { id: 0, encoding: DUMMY, any: false }];
        for spot in spots {
            for &cpu in cpus {
                let spot = Spot { cpu: Some(cpu), ..*spot };
                match self.open_at(&dummy, &spot, opened.user_only)? {
                    Placed::Open(handles) => group.push(handles, spot.scope, &mut opened.width),
                    Placed::Absent => {}
                    Placed::Refused(_, errno) => group.refused.push((
                        spot.scope,
                        Missing::NotSupported(format!("the time on CPU {cpu} ({})", errno.desc())),
                    )),
                }
            }
        }
        Ok(Some(group))
    }

    /// The settings of all events of a run.
    pub(super) fn template(&self, user_only: bool) -> Event {
        Event {
            encoding: DUMMY,
            subject: Subject::AllTasks,
            cpu: None,
            inherit: self.request.inherit
                && !matches!(self.request.target, crate::Target::Thread(_)),
            exclude_kernel: user_only,
            enable_on_exec: self.enable_on_exec(),
            group_read: self.group_read,
        }
    }

    pub(super) fn open_one(
        &mut self,
        event: &Coded,
        spot: &Spot,
        leader: Option<Handle>,
        user_only: bool,
    ) -> std::result::Result<Handle, Errno> {
        let template = self.template(user_only);
        let event = Event {
            encoding: event.encoding,
            subject: spot.subject,
            cpu: spot.cpu,
            inherit: template.inherit && matches!(spot.subject, Subject::Task(_)),
            enable_on_exec: template.enable_on_exec && spot.subject != Subject::Task(0),
            ..template
        };
        match self.kernel.open(&event, leader) {
            Err(Errno::EMFILE) if self.kernel.raise_file_limit() => {
                self.kernel.open(&event, leader)
            }
            other => other,
        }
    }

    /// Why an event cannot be counted; an error if no other event can be either.
    pub(super) fn reason(&self, core: usize, id: EventId, errno: Errno) -> Result<Missing> {
        let name = self.request.cores[core].table.events[usize::from(id)].name.clone();
        match errno {
            Errno::EMFILE | Errno::ENFILE => Err(self.too_many()),
            Errno::EACCES | Errno::EPERM => Ok(Missing::NotPermitted(format!(
                "{name} counts the sibling thread too, which requires CAP_PERFMON"
            ))),
            _ => Ok(Missing::NotSupported(format!("{name} ({})", errno.desc()))),
        }
    }

    fn too_many(&self) -> Error {
        let events: usize = self.part.iter().flatten().map(|(_, g)| g.len()).sum();
        let needed = events * self.places.max(1) + 64;
        Error::failed("too many events for the limit on open files")
            .because(format!("{events} events at {} places each", self.places.max(1)))
            .hint(format!("ulimit -n {needed}, or fewer nodes (--level, --nodes) or CPUs (-C)"))
    }

    /// Closes everything.
    pub(super) fn close_all(&mut self, opened: &Opened) {
        let references = opened.references.iter().flatten();
        opened.groups.iter().chain(references).for_each(|group| self.close_group(group));
    }

    fn close_group(&mut self, group: &OpenGroup) {
        for handle in group.instances.iter().flat_map(|i| &i.handles) {
            self.kernel.close(*handle);
        }
    }
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
        return Err(Missing::NotMeasured(format!("no event number {id} in {}", table.name)));
    };
    let name = &event.name;
    let outside = |what: &str| Missing::NotMeasured(format!("{name} {what}"));
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
    let encoding =
        encode(&event.spec, pmu).map_err(|why| Missing::NotSupported(format!("{name}: {why}")))?;
    Ok(Coded { id, encoding, any: event.spec.any })
}
