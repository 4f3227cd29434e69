//! One reading of all open groups: the counts since the last reading.

use super::opened::{Instance, Opened};
use super::run::Run;
use nix::errno::Errno;

impl Run<'_, '_> {
    /// Reads everything; `delta` has the counts since the last reading.
    pub(super) fn read(&mut self, opened: &Opened) {
        self.delta.fill(0);
        for instance in opened.all().flat_map(|group| &group.instances) {
            self.read_instance(instance);
        }
        self.share_wholes(opened);
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
