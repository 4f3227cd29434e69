//! Many groups take turns in a random order.
//!
//! The kernel lets groups take turns of 4 ms in a fixed order. A program whose phases are about as long
//! as a round is then always seen at the same point of them, and nothing in the counts shows it. So at
//! each reading a random half of the groups, or fewer, is enabled for the time until the next, whose
//! length is random, too; the kernel's turns go on among them. Each round a group is drawn once.

use super::opened::Opened;
use super::run::Run;
use std::time::Duration;

/// A turn of the kernel: PERF_CPU_HRTIMER in kernel/events/core.c.
const TURN: Duration = Duration::from_millis(4);
/// Least number of readings of an interval with turns: every group needs one.
const PER_INTERVAL: u32 = 4;

impl Run<'_, '_> {
    /// The next turns; returns when the next reading is due, which without turns is `period` from `now`.
    pub(super) fn take_turns(&mut self, opened: &Opened, now: Duration) -> Duration {
        if self.turns.decks.is_empty() {
            return now + self.period;
        }
        let length = self.request.interval;
        let all = length.is_some_and(|length| self.period * PER_INTERVAL > length);
        let next = match all {
            true => self.period,
            false => self.period.mul_f64(0.75 + 0.5 * self.turns.random()),
        };
        let turns = (next.as_nanos() / TURN.as_nanos()) as usize;
        for deck in 0..self.turns.decks.len() {
            let groups = self.turns.decks[deck].groups.len();
            let n = if all { groups } else { turns.clamp(1, groups.div_ceil(2)) };
            let on = self.turns.draw(deck, n);
            let before = std::mem::replace(&mut self.turns.decks[deck].on, on.clone());
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
