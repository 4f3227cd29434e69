//! Splitting groups that the kernel refuses.

use super::coded::{Coded, ids};
use super::opened::Opened;
use super::place::Spot;
use super::run::Run;
use super::state::{How, Part, Stop};
use crate::kernel::Handle;
use nix::errno::Errno;
use tma::quantity::Missing;
use tma::schedule::{self, Budget};
use tma::tables::EventId;

/// How far the kernel accepts a group.
enum Accepted {
    /// All its events that exist on this PMU, open.
    Whole(Vec<(Coded, Handle)>),
    /// The events before this one as one group; the rest does not fit.
    UpTo(usize),
    /// Nothing: the thread has ended or the CPU is offline.
    Absent,
}

impl Run<'_, '_> {
    /// Splits `events` into parts that the kernel accepts as groups, and opens them at the first of
    /// `spots` that is present.
    pub(super) fn split_by_kernel(
        &mut self,
        core: usize,
        events: &[Coded],
        spots: &[Spot],
        opened: &mut Opened,
    ) -> std::result::Result<Vec<Part>, Stop> {
        let mut spots = spots.iter();
        let mut spot = spots.next();
        let mut parts: Vec<Part> = Vec::new();
        let mut pending = vec![events.to_vec()];
        while let Some(group) = pending.pop() {
            let Some(here) = spot else {
                let nothing =
                    Missing::NotMeasured("all threads had ended or all CPUs were offline".into());
                group.iter().for_each(|e| opened.miss(core, e.id, nothing.clone()));
                continue;
            };
            match self.accepted(core, &group, here, opened) {
                Ok(Accepted::Absent) => {
                    opened.omit(here);
                    spot = spots.next();
                    pending.push(group);
                }
                Ok(Accepted::Whole(group)) if group.is_empty() => {}
                Ok(Accepted::Whole(group)) => {
                    let (events, handles) = group.into_iter().unzip();
                    parts.push(Part { events, open: Some((*here, handles)) });
                }
                Ok(Accepted::UpTo(at)) => {
                    let halves = self.halves(core, &group);
                    let two = || vec![group[..at].to_vec(), group[at..].to_vec()];
                    pending.extend(halves.unwrap_or_else(two).into_iter().rev());
                }
                Err(stop) => {
                    parts.into_iter().for_each(|part| self.close_part(part));
                    return Err(stop);
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
        let how = How::from_start(opened.user_only);
        let mut open: Vec<(Coded, Handle)> = Vec::new();
        let mut outcome = Ok(None);
        for (at, event) in group.iter().enumerate() {
            let leader = open.first().map(|(_, h)| *h);
            let mut got = self.open_one(event, spot, leader, how);
            if leader.is_some() && got == Err(Errno::EINVAL) {
                got = self.open_one(event, spot, None, how);
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
                Err(errno) if self.is_absent(errno, spot, how) => {
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
        if let Ok(None) = outcome {
            return Ok(Accepted::Whole(open));
        }
        open.iter().for_each(|(_, h)| self.kernel.close(*h));
        outcome.map(|split| split.unwrap_or(Accepted::Absent))
    }

    /// Two smaller groups for one that does not fit, as the planner halves it.
    pub(super) fn halves(&self, core: usize, group: &[Coded]) -> Option<Vec<Vec<Coded>>> {
        let table = self.request.cores[core].table;
        let machine = self.request.machine;
        let watchdog = machine.kernel.nmi_watchdog == Some(true);
        let budget = Budget::of(table, machine.topology.smt, watchdog);
        let halves = schedule::split(&schedule::Group { events: ids(group) }, table, &budget);
        let smaller = halves.len() > 1 && halves.iter().all(|h| h.events.len() < group.len());
        let coded = |id: &EventId| group.iter().find(|e| e.id == *id).copied();
        smaller
            .then(|| halves.iter().map(|h| h.events.iter().filter_map(coded).collect()).collect())
    }
}
