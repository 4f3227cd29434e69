//! Many groups, multiplexed in a random order.
//!
//! The kernel multiplexes groups in slices of 4 ms in a fixed order. A program whose phases are about as long as a
//! round is then always seen at the same point of them, and nothing in the counts shows it. So at each reading a random
//! half of the groups, or fewer, is enabled for the time until the next, whose length is random, too; the kernel
//! multiplexes these as usual. Each round a group is drawn once.

use super::opened::Opened;
use super::run::Run;
use std::time::Duration;

/// A slice of the kernel: PERF_CPU_HRTIMER in kernel/events/core.c.
const SLICE: Duration = Duration::from_millis(4);
/// Minimum readings of an interval with such groups: every group needs one.
const PER_INTERVAL: u32 = 4;

impl Run<'_, '_> {
    /// Enables the next groups; returns when the next reading is due, which without such groups is `period` from `now`.
    pub(super) fn rotate(&mut self, opened: &Opened, now: Duration) -> Duration {
        if self.rotation.decks.is_empty() {
            return now + self.period;
        }
        let length = self.request.interval;
        let all = length.is_some_and(|length| self.period * PER_INTERVAL > length);
        let next = match all {
            true => self.period,
            false => self.period.mul_f64(0.75 + 0.5 * self.rotation.random()),
        };
        let slices = (next.as_nanos() / SLICE.as_nanos()) as usize;
        for deck in 0..self.rotation.decks.len() {
            let groups = self.rotation.decks[deck].groups.len();
            let n = if all { groups } else { slices.clamp(1, groups.div_ceil(2)) };
            let on = self.rotation.draw(deck, n);
            let before = std::mem::replace(&mut self.rotation.decks[deck].on, on.clone());
            for g in before.iter().filter(|g| !on.contains(g)) {
                self.switch(&opened.groups[*g], false);
            }
            for g in on.iter().filter(|g| !before.contains(g)) {
                self.switch(&opened.groups[*g], true);
            }
        }
        now + next
    }
}
