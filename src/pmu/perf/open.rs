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
//! | the group opens but never gets counters | the part of it that gets some is counted, and the whole tried again later |

use super::opened::{How, OpenGroup, Opened, Part, Placed, Stop, Whole};
use super::place::{Coded, Places, Spot, code, ids};
use super::run::Run;
use super::software::DUMMY;
use crate::Target;
use crate::kernel::{Event, Handle, Subject};
use nix::errno::Errno;
use tma::error::{Error, Result};
use tma::quantity::Missing;
use tma::tables::EventId;
use tma::text::several;

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
                let why = Missing::NotPermitted(why.clone().into());
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
            let of_kind = cpus.filter(|_| hybrid && !places.by_cpu);
            opened.by_kind |= of_kind.is_some();
            let reference = match of_kind.is_some() || opened.is_rotated(core) {
                true => Some(self.open_reference(core, &spots, of_kind, opened)?),
                false => None,
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
        let parts = self.split_by_kernel(core, events, spots, opened)?;
        if parts.len() > 1 {
            let (n, parts) = (events.len(), parts.len());
            opened.note(format!(
                "a group of {n} events is too large for this kernel and was opened in {parts} parts"
            ));
        }
        let mut parts = parts.into_iter();
        let outcome = parts.try_for_each(|part| self.open_fitting(core, part, spots, cpus, opened));
        parts.for_each(|part| self.close_part(part));
        outcome
    }

    /// Opens a group that the kernel accepts: whole, or what of it gets counters, with the whole on
    /// standby.
    fn open_fitting(
        &mut self,
        core: usize,
        part: Part,
        spots: &[Spot],
        cpus: Option<&[u32]>,
        opened: &mut Opened,
    ) -> std::result::Result<(), Stop> {
        let how = How::from_start(opened.user_only);
        let Some(smaller) = self.smaller(core, &part, cpus, how) else {
            let group = self.open_everywhere(core, part, spots, how, opened)?;
            opened.groups.push(group);
            return Ok(());
        };
        opened.note(
            "other programs hold counters (the NMI watchdog or another profiler): groups that \
             never got one were split"
                .into(),
        );
        let events = part.events.clone();
        self.close_part(part);
        let first = opened.groups.len();
        for events in smaller {
            let group = self.open_everywhere(core, Part::new(events), spots, how, opened)?;
            opened.groups.push(group);
        }
        let standby = How { standby: true, ..how };
        let group = self.open_everywhere(core, Part::new(events), spots, standby, opened)?;
        opened.wholes.push(Whole { group, parts: first..opened.groups.len() });
        Ok(())
    }

    /// Opens a group that the kernel accepts at all places.
    fn open_everywhere(
        &mut self,
        core: usize,
        part: Part,
        spots: &[Spot],
        how: How,
        opened: &mut Opened,
    ) -> std::result::Result<OpenGroup, Stop> {
        let mut group = OpenGroup::new(core, ids(&part.events));
        let mut open = part.open;
        for spot in spots {
            let placed = match open.take_if(|(at, _)| *at == *spot) {
                Some((_, handles)) => Ok(Placed::Open(handles)),
                None => self.open_at(&part.events, spot, how),
            };
            let placed = placed.and_then(|placed| match placed {
                Placed::Open(handles) => {
                    group.push(handles, *spot, &mut opened.width);
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
                self.close_part(Part { events: Vec::new(), open });
                return Err(stop);
            }
        }
        Ok(group)
    }

    /// The time that could be counted: the running time of a dummy event, which needs no counter, so that
    /// it is never multiplexed. With `cpus`, of tasks on these alone.
    fn open_reference(
        &mut self,
        core: usize,
        spots: &[Spot],
        cpus: Option<&[u32]>,
        opened: &mut Opened,
    ) -> std::result::Result<OpenGroup, Stop> {
        let mut group = OpenGroup::new(core, Vec::new());
        let dummy = [Coded { id: 0, encoding: DUMMY, any: false }];
        let on = |spot: &Spot| match cpus {
            Some(cpus) => cpus.iter().map(|cpu| Spot { cpu: Some(*cpu), ..*spot }).collect(),
            None => vec![*spot],
        };
        for spot in spots.iter().flat_map(on) {
            match self.open_at(&dummy, &spot, How::from_start(opened.user_only))? {
                Placed::Open(handles) => group.push(handles, spot, &mut opened.width),
                Placed::Absent => {}
                Placed::Refused(_, errno) => group.refused.push((
                    spot.scope,
                    Missing::NotSupported(format!("the time of tasks ({})", errno.desc()).into()),
                )),
            }
        }
        Ok(group)
    }

    /// Closes everything.
    pub(super) fn close_all(&mut self, opened: &Opened) {
        opened.all().for_each(|group| self.close_group(group));
    }

    pub(super) fn close_part(&mut self, part: Part) {
        part.open.into_iter().flat_map(|(_, all)| all).for_each(|h| self.kernel.close(h));
    }

    fn close_group(&mut self, group: &OpenGroup) {
        for handle in group.instances.iter().flat_map(|i| &i.handles) {
            self.kernel.close(*handle);
        }
    }

    /// Opens a group that the kernel is known to accept at one place.
    pub(super) fn open_at(
        &mut self,
        part: &[Coded],
        spot: &Spot,
        how: How,
    ) -> std::result::Result<Placed, Stop> {
        let mut handles: Vec<Handle> = Vec::with_capacity(part.len());
        for event in part {
            match self.open_one(event, spot, handles.first().copied(), how) {
                Ok(handle) => handles.push(handle),
                Err(errno) => {
                    handles.into_iter().for_each(|h| self.kernel.close(h));
                    return match errno {
                        Errno::EACCES | Errno::EPERM => Err(Stop::Denied),
                        Errno::EMFILE | Errno::ENFILE => Err(Stop::Fatal(self.too_many())),
                        errno if self.is_absent(errno, spot, how) => Ok(Placed::Absent),
                        errno => Ok(Placed::Refused(event.id, errno)),
                    };
                }
            }
        }
        Ok(Placed::Open(handles))
    }

    /// Whether `errno` means that the thread has ended or the CPU is offline: then nothing can be opened
    /// there. Some PMUs refuse events with the same number.
    pub(super) fn is_absent(&mut self, errno: Errno, spot: &Spot, how: How) -> bool {
        const ABSENT: [Errno; 2] = [Errno::ESRCH, Errno::ENODEV];
        let dummy = Coded { id: 0, encoding: DUMMY, any: false };
        ABSENT.contains(&errno)
            && match self.open_one(&dummy, spot, None, how) {
                Ok(handle) => {
                    self.kernel.close(handle);
                    false
                }
                Err(errno) => ABSENT.contains(&errno),
            }
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
        how: How,
    ) -> std::result::Result<Handle, Errno> {
        let template = self.template(how.user_only);
        let event = Event {
            encoding: event.encoding,
            subject: spot.subject,
            cpu: spot.cpu,
            inherit: template.inherit && matches!(spot.subject, Subject::Task(_)),
            enable_on_exec: template.enable_on_exec
                && !how.standby
                && spot.subject != Subject::Task(0),
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
            Errno::EACCES | Errno::EPERM => Ok(Missing::NotPermitted(
                format!("{name} counts the sibling thread too, which requires CAP_PERFMON").into(),
            )),
            _ => Ok(Missing::NotSupported(format!("{name} ({})", errno.desc()).into())),
        }
    }

    pub(super) fn too_many(&self) -> Error {
        let events: usize = self.part.iter().flatten().map(|(_, g)| g.len()).sum();
        let needed = events * self.places.max(1) + 64;
        Error::failed("too many events for the limit on open files")
            .because(format!(
                "{} at {} each",
                several(events, "event"),
                several(self.places.max(1), "place")
            ))
            .hint(format!("ulimit -n {needed}, or fewer nodes (--level, --nodes) or CPUs (-C)"))
    }

    /// Nothing at all can be counted on this target.
    pub(super) fn nothing_permitted(&self) -> Error {
        let kernel = &self.request.machine.kernel;
        let (subject, (cause, remedy)) = match &self.request.target {
            Target::System | Target::Cpus(_) => ("whole CPUs".to_owned(), kernel.why_no_cpus()),
            Target::Cgroup(_) => ("a control group".to_owned(), kernel.why_no_cpus()),
            Target::Process(id) | Target::Thread(id) => {
                let why = owner(*id).map(|owner| kernel.why_not_theirs(&owner));
                (format!("process {id}"), why.unwrap_or_else(|| kernel.why_denied()))
            }
            Target::Command => ("this process".to_owned(), kernel.why_denied()),
        };
        Error::failed(format!("not permitted to count on {subject}")).because(cause).hint(remedy)
    }
}

/// The user of the process or thread `id`, if it is another user.
fn owner(id: i32) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let folder = std::fs::metadata(format!("/proc/{id}")).ok()?;
    let user = nix::unistd::Uid::from_raw(folder.uid());
    let is_ours = user == nix::unistd::Uid::effective()
        && folder.gid() == nix::unistd::Gid::effective().as_raw();
    let name = || nix::unistd::User::from_uid(user).ok().flatten().map(|u| u.name);
    (!is_ours).then(|| name().unwrap_or_else(|| format!("user {user}")))
}
