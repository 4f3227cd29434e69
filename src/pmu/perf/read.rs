//! One reading of all open groups: the counts since the last reading.

use super::opened::{Instance, Opened};
use super::run::Run;
use nix::errno::Errno;

/// Events of one CPU from which on it is visited to read them: reading one from another CPU interrupts
/// that, which costs more than half as much as going there.
const VISIT_FROM: usize = 4;

impl Run<'_, '_> {
    /// Reads everything; `delta` has the counts since the last reading.
    pub(super) fn read(&mut self, opened: &Opened) {
        self.delta.fill(0);
        let mut instances: Vec<&Instance> = opened.all().flat_map(|g| &g.instances).collect();
        let visits = opened.by_cpu && instances.len() >= VISIT_FROM * self.places.max(1);
        if visits {
            instances.sort_by_key(|i| i.spot.cpu);
        }
        let mut here = None;
        for instance in instances {
            if visits && instance.spot.cpu != here {
                here = instance.spot.cpu;
                self.kernel.visit(here);
            }
            self.read_instance(instance);
        }
        if visits {
            self.kernel.visit(None);
        }
        self.share_wholes(opened);
        self.multiplexed |= self.is_multiplexed(opened);
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
                    // The kernel takes groups apart when their CPU goes offline
                    // (perf_event_exit_cpu): each member keeps its count.
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
