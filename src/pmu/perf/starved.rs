//! Splitting groups that the kernel accepts but never gives counters, because other programs hold them. A group that is
//! only multiplexed stays whole.

use super::coded::Coded;
use super::place::Spot;
use super::run::Run;
use super::state::{How, Kind, Part, Placed};
use crate::kernel::{Handle, Subject};
use std::time::Duration;
use tma::tables::EventId;

/// How long a group may wait for its slice: those of 62 groups of other programs, of 4 ms each (PERF_CPU_HRTIMER in
/// kernel/events/core.c). Profilers of whole trees have about 40.
const LONGEST_WAIT: Duration = Duration::from_millis(250);
/// How long when another group has waited that long in vain: multiplexing is then not the cause.
const SHORT_WAIT: Duration = Duration::from_millis(60);

impl Run<'_, '_> {
    /// The parts to count of a group that gets no counters as a whole. `None`: it gets them, or no part
    /// does either.
    pub(super) fn smaller(
        &mut self,
        core: usize,
        part: &Part,
        cpus: Option<&[u32]>,
        how: How,
    ) -> Option<Vec<Vec<Coded>>> {
        let (spot, handles) = part.open.as_ref()?;
        if part.events.len() < 2 || self.starts(core, &part.events, spot, Some(handles), cpus, how)
        {
            return None;
        }
        let mut pending = self.halves(core, &part.events)?;
        pending.reverse();
        let (mut parts, mut helps) = (Vec::new(), false);
        while let Some(part) = pending.pop() {
            let starts = self.starts(core, &part, spot, None, cpus, how);
            helps |= starts;
            match self.halves(core, &part).filter(|_| !starts) {
                Some(halves) => pending.extend(halves.into_iter().rev()),
                // A part without counters is reported as not counted.
                None => parts.push(part),
            }
        }
        helps.then_some(parts)
    }

    /// Whether a group ever gets counters, tested once for each kind of group. It is `true` if that
    /// cannot be tested.
    fn starts(
        &mut self,
        core: usize,
        events: &[Coded],
        spot: &Spot,
        open: Option<&[Handle]>,
        cpus: Option<&[u32]>,
        how: How,
    ) -> bool {
        let kind = self.kind(core, events);
        let known = self.tested.iter().find(|(other, starts)| match starts {
            true => kind.is_within(other),
            false => other.is_within(&kind),
        });
        if let Some((_, starts)) = known {
            return *starts;
        }
        let starts = self.gets_counters(events, spot, open, cpus, how);
        self.tested.push((kind, starts));
        starts
    }

    /// Events of tasks are tested on this process, those of CPUs where they are opened: the kernel multiplexes each
    /// kind separately, and CPUs come first.
    fn gets_counters(
        &mut self,
        events: &[Coded],
        spot: &Spot,
        open: Option<&[Handle]>,
        cpus: Option<&[u32]>,
        how: How,
    ) -> bool {
        let by_cpu = !matches!(spot.subject, Subject::Task(_));
        let in_vain = self.tested.iter().any(|(_, starts)| !starts);
        let wait = if in_vain { SHORT_WAIT } else { LONGEST_WAIT };
        if let (Subject::AllTasks, Some([leader, ..])) = (spot.subject, open) {
            return self.kernel.runs(*leader, None, wait) != Some(false);
        }
        let here = match by_cpu {
            true => Spot { subject: Subject::AllTasks, ..*spot },
            false => Spot { subject: Subject::Task(0), cpu: None, scope: 0 },
        };
        let Ok(Placed::Open(handles)) = self.open_at(events, &here, how) else { return true };
        let cpus = cpus.filter(|_| !by_cpu);
        let ran = handles.first().and_then(|h| self.kernel.runs(*h, cpus, wait));
        handles.into_iter().for_each(|h| self.kernel.close(h));
        ran != Some(false)
    }

    fn kind(&self, core: usize, events: &[Coded]) -> Kind {
        let table = self.request.cores[core].table;
        let needs = |id: EventId| {
            let spec = &table.events[usize::from(id)].spec;
            let mask = |all: &Vec<u8>| all.iter().fold(0u64, |m, c| m | 1 << (c & 31));
            match (spec.fixed, spec.metric) {
                (Some(fixed), _) => 1 << 40 | u64::from(fixed),
                (_, Some(metric)) => 2 << 40 | u64::from(metric),
                // A counter of any number comes last: it is the easiest to have.
                _ => spec.counters.as_ref().map_or(u64::MAX, mask),
            }
        };
        let mut needs: Vec<u64> = events.iter().map(|e| needs(e.id)).collect();
        needs.sort_unstable();
        Kind { core, needs }
    }
}
