//! Splitting groups that do not fit: those the kernel refuses, and those that never get counters.

use super::open::{Coded, Placed, Stop, ids};
use super::opened::Opened;
use super::place::Spot;
use super::run::Run;
use crate::kernel::{Handle, Subject};
use nix::errno::Errno;
use std::time::Duration;
use tma::quantity::Missing;
use tma::schedule::{self, Budget};
use tma::tables::EventId;

/// What the kernel accepts of a group.
enum Accepted {
    /// All its events that exist on this PMU.
    Whole(Vec<Coded>),
    /// The events before this one as one group; the rest does not fit.
    UpTo(usize),
    /// Nothing: the thread has ended or the CPU is offline.
    Absent,
}

impl Run<'_, '_> {
    /// Splits `events` into parts that the kernel accepts as groups, tested at the first of `spots` that
    /// is present.
    pub(super) fn split_by_kernel(
        &mut self,
        core: usize,
        events: &[Coded],
        spots: &[Spot],
        opened: &mut Opened,
    ) -> std::result::Result<Vec<Vec<Coded>>, Stop> {
        let mut spots = spots.iter();
        let mut spot = spots.next();
        let mut parts: Vec<Vec<Coded>> = Vec::new();
        let mut pending = vec![events.to_vec()];
        while let Some(group) = pending.pop() {
            let Some(here) = spot else {
                let nothing =
                    Missing::NotMeasured("all threads had ended or all CPUs were offline".into());
                group.iter().for_each(|e| opened.miss(core, e.id, nothing.clone()));
                continue;
            };
            match self.accepted(core, &group, here, opened)? {
                Accepted::Absent => {
                    opened.omit(here);
                    spot = spots.next();
                    pending.push(group);
                }
                Accepted::Whole(group) if group.is_empty() => {}
                Accepted::Whole(group) => parts.push(group),
                Accepted::UpTo(at) => {
                    pending.extend(self.halves(core, &group, at).into_iter().rev());
                }
            }
        }
        Ok(parts)
    }

    /// Whether the kernel accepts `group` as one; events that it does not have are omitted.
    fn accepted(
        &mut self,
        core: usize,
        group: &[Coded],
        spot: &Spot,
        opened: &mut Opened,
    ) -> std::result::Result<Accepted, Stop> {
        let mut open: Vec<(Coded, Handle)> = Vec::new();
        let mut outcome = Ok(None);
        for (at, event) in group.iter().enumerate() {
            let leader = open.first().map(|(_, h)| *h);
            let mut got = self.open_one(event, spot, leader, opened.user_only);
            if leader.is_some() && got == Err(Errno::EINVAL) {
                got = self.open_one(event, spot, None, opened.user_only);
                if let Ok(alone) = got {
                    self.kernel.close(alone);
                    outcome = Ok(Some(Accepted::UpTo(at)));
                    break;
                }
            }
            match got {
                Ok(handle) => open.push((*event, handle)),
                Err(Errno::EACCES | Errno::EPERM) if !event.any || !opened.user_only => {
                    outcome = Err(Stop::Denied);
                    break;
                }
                Err(errno) if self.is_absent(errno, spot, opened.user_only) => {
                    outcome = Ok(Some(Accepted::Absent));
                    break;
                }
                Err(errno) => match self.reason(core, event.id, errno) {
                    Ok(why) => opened.miss(core, event.id, why),
                    Err(fatal) => {
                        outcome = Err(Stop::Fatal(fatal));
                        break;
                    }
                },
            }
        }
        open.iter().for_each(|(_, h)| self.kernel.close(*h));
        let whole = || Accepted::Whole(open.iter().map(|(e, _)| *e).collect());
        outcome.map(|split| split.unwrap_or_else(whole))
    }

    /// Two smaller groups for one that does not fit: halved as the planner does, so that the core clock
    /// is in both; otherwise the events before `at` and the rest.
    fn halves(&self, core: usize, group: &[Coded], at: usize) -> Vec<Vec<Coded>> {
        let table = self.request.cores[core].table;
        let machine = self.request.machine;
        let watchdog = machine.kernel.nmi_watchdog == Some(true);
        let budget = Budget::of(table, machine.topology.smt, watchdog);
        let halves = schedule::split(&schedule::Group { events: ids(group) }, table, &budget);
        let smaller = halves.len() > 1 && halves.iter().all(|h| h.events.len() < group.len());
        if !smaller {
            return vec![group[..at].to_vec(), group[at..].to_vec()];
        }
        let coded = |id: &EventId| group.iter().find(|e| e.id == *id).copied();
        halves.iter().map(|h| h.events.iter().filter_map(coded).collect()).collect()
    }

    /// Splits parts that open but get no counters; whether there were any.
    pub(super) fn split_starved(
        &mut self,
        core: usize,
        parts: &mut Vec<Vec<Coded>>,
        cpus: Option<&[u32]>,
        user_only: bool,
    ) -> bool {
        let mut split = false;
        let mut pending: Vec<Vec<Coded>> = std::mem::take(parts);
        pending.reverse();
        while let Some(part) = pending.pop() {
            // A single event without a counter is reported as not counted.
            if part.len() < 2 || self.gets_counters(&part, cpus, user_only) != Some(false) {
                parts.push(part);
                continue;
            }
            let middle = part.len() / 2;
            pending.extend(self.halves(core, &part, middle).into_iter().rev());
            split = true;
        }
        split
    }

    /// Whether a group ever runs, tested on this process; `None` if that cannot be tested.
    fn gets_counters(
        &mut self,
        part: &[Coded],
        cpus: Option<&[u32]>,
        user_only: bool,
    ) -> Option<bool> {
        let spot = Spot { subject: Subject::Task(0), cpu: None, scope: 0 };
        let Ok(Placed::Open(handles)) = self.open_at(part, &spot, user_only) else { return None };
        let timeout = Duration::from_millis(10);
        let ran = handles.first().and_then(|h| self.kernel.runs(*h, cpus, timeout));
        handles.into_iter().for_each(|h| self.kernel.close(h));
        ran
    }
}
