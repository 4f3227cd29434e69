//! One reading of all open groups: the counts since the last reading.

use super::opened::{Instance, Opened};
use super::run::Run;
use super::software::{Counters, Totals};
use nix::errno::Errno;
use std::collections::BTreeSet;
use std::time::Duration;

/// Events of one CPU from which on it is visited to read them: reading one from another CPU interrupts
/// that, which costs more than half as much as going there.
const VISIT_FROM: usize = 4;

impl Run<'_, '_> {
    /// Reads all groups; `delta` has the counts since the last reading.
    pub(super) fn read(&mut self, opened: &Opened) {
        self.read_beside(opened, None);
    }

    /// As [`Self::read`], and the software counts while a CPU is visited; when those were read, on average.
    pub(super) fn read_beside(
        &mut self,
        opened: &Opened,
        mut software: Option<&mut Counters>,
    ) -> (Duration, Totals) {
        self.delta.fill(0);
        let (mut at, mut totals) = (Duration::ZERO, Totals::default());
        let mut instances: Vec<&Instance> = opened.all().flat_map(|g| &g.instances).collect();
        let beside = software.as_ref().map_or(0, |s| s.len());
        if opened.by_cpu && instances.len() + beside >= VISIT_FROM * self.places.max(1) {
            // Each visit of another CPU is a migration: the first is where this thread runs.
            let here = self.kernel.here();
            let order = |cpu: Option<u32>| (cpu != here, cpu);
            instances.sort_by_key(|i| order(i.spot.cpu));
            let of_software = software.iter().flat_map(|s| s.cpus());
            let all = instances.iter().map(|i| i.spot.cpu).chain(of_software.copied());
            let stops: BTreeSet<_> = all.map(order).collect();
            let mut rest = instances.as_slice();
            for (_, cpu) in &stops {
                self.kernel.visit(*cpu);
                if let Some(software) = &mut software {
                    at += self.kernel.now();
                    software.add(*cpu, self.kernel, &mut totals);
                }
                let n = rest.iter().take_while(|i| i.spot.cpu == *cpu).count();
                rest[..n].iter().for_each(|i| self.read_instance(i));
                rest = &rest[n..];
            }
            self.kernel.visit(None);
            at /= u32::try_from(stops.len()).unwrap_or(1).max(1);
            if let Some(software) = software {
                software.complete(self.kernel, &mut totals);
            }
        } else {
            instances.iter().for_each(|i| self.read_instance(i));
            if let Some(software) = software {
                (at, totals) = self.software_now(software);
            }
        }
        self.share_wholes(opened);
        self.multiplexed |= self.is_multiplexed(opened);
        (at, totals)
    }

    /// Whether a group had to wait for counters since the last reading.
    fn is_multiplexed(&self, opened: &Opened) -> bool {
        let waits = |i: &Instance| match self.delta.get(i.offset..i.offset + 2) {
            // Times of a group are not read at one instant everywhere.
            Some([enabled, running]) => *running as f64 + 1e3 < 0.99 * *enabled as f64,
            _ => false,
        };
        !opened.wholes.is_empty() || opened.groups.iter().flat_map(|g| &g.instances).any(waits)
    }

    fn read_instance(&mut self, instance: &Instance) {
        match self.read_words(instance) {
            Ok(()) => self.late_readings |= self.unread.remove(&instance.offset).is_some(),
            Err(errno) => {
                self.unread.insert(instance.offset, errno);
            }
        }
    }

    fn read_words(&mut self, instance: &Instance) -> Result<(), Errno> {
        let mut at = instance.offset;
        let mut put = |value: u64| {
            if let (Some(last), Some(delta)) = (self.last.get_mut(at), self.delta.get_mut(at)) {
                *delta = value.saturating_sub(*last);
                *last = value.max(*last);
            }
            at += 1;
        };
        let Some(leader) = instance.handles.first() else { return Ok(()) };
        self.kernel.read(*leader, &mut self.words)?;
        let members = &instance.handles[1..];
        match self.words.as_slice() {
            [nr, times_and_values @ ..] if self.group_read => {
                let apart = *nr == 1 && !members.is_empty();
                times_and_values.iter().take(2 + instance.handles.len()).for_each(|v| put(*v));
                if apart {
                    // The kernel takes groups apart when their CPU goes offline (perf_event_exit_cpu): each member
                    // retains its count.
                    self.left.extend(instance.spot.cpu);
                    for member in members {
                        let read = self.kernel.read(*member, &mut self.words);
                        put(self.words.get(3).copied().filter(|_| read.is_ok()).unwrap_or(0));
                    }
                }
                Ok(())
            }
            [value, enabled, running] => {
                [enabled, running, value].into_iter().for_each(|v| put(*v));
                let mut outcome = Ok(());
                for member in members {
                    let read = self.kernel.read(*member, &mut self.words);
                    // A failed read leaves the old words: no new counts.
                    put(if read.is_ok() { self.words[0] } else { 0 });
                    outcome = outcome.and(read);
                }
                outcome
            }
            // The kernel's end of file for events in its error state (perf_event_open(2)).
            _ => Err(Errno::EIO),
        }
    }
}
