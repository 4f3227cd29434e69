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

use super::coded::{Coded, code, ids};
use super::opened::{OpenGroup, Opened, Whole};
use super::place::{Places, Spot};
use super::run::Run;
use super::software_event::DUMMY;
use super::state::{How, Part, Placed, Stop};
use tma::error::Result;
use tma::quantity::Missing;

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
}
