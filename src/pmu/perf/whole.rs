//! Groups that are counted in parts because other programs hold counters: the whole is opened from time to time, and
//! counted as soon as it gets its counters.

use super::opened::{OpenGroup, Opened, Whole};
use super::run::Run;
use super::state::Counting;
use std::time::Duration;

/// Time between two trials.
const RETRY: Duration = Duration::from_millis(500);
/// How long a whole group may be without counters.
const TRIAL: Duration = Duration::from_millis(60);

impl Run<'_, '_> {
    /// Enters what whole groups have counted since the last reading as counts of their parts.
    pub(super) fn share_wholes(&mut self, opened: &Opened) {
        for (whole, counting) in opened.wholes.iter().zip(&self.counting) {
            if matches!(counting, Counting::Whole(_)) {
                share(whole, &opened.groups, &mut self.delta);
            }
        }
    }

    /// Tries a whole group, or ends the trial, after a reading at `now`.
    pub(super) fn try_wholes(&mut self, opened: &Opened, now: Duration) {
        for (at, whole) in opened.wholes.iter().enumerate() {
            let ran = self.ran(&whole.group);
            let parts = &opened.groups[whole.parts.clone()];
            self.counting[at] = match self.counting[at] {
                Counting::Trial(_) if ran => {
                    parts.iter().for_each(|g| self.switch(g, false));
                    self.rejoined = true;
                    // The next trial follows at once.
                    self.next_trial = now;
                    Counting::Whole(now)
                }
                Counting::Trial(since) if now - since >= TRIAL => {
                    self.switch(&whole.group, false);
                    Counting::Parts
                }
                Counting::Whole(_) if ran => Counting::Whole(now),
                Counting::Whole(since) if now - since >= TRIAL => {
                    self.switch(&whole.group, false);
                    parts.iter().for_each(|g| self.switch(g, true));
                    Counting::Parts
                }
                other => other,
            };
        }
        self.begin_trial(opened, now);
    }

    /// One at a time: a group that does not fit takes time from the others.
    fn begin_trial(&mut self, opened: &Opened, now: Duration) {
        let on_trial = |c: &Counting| matches!(c, Counting::Trial(_));
        if now < self.next_trial || self.counting.iter().any(on_trial) {
            return;
        }
        let waiting = |at: &usize| self.counting[*at] == Counting::Parts;
        let n = opened.wholes.len();
        let next = (0..n).map(|i| (self.tried + 1 + i) % n.max(1)).find(waiting);
        if let Some(at) = next {
            self.switch(&opened.wholes[at].group, true);
            self.counting[at] = Counting::Trial(now);
            (self.tried, self.next_trial) = (at, now + RETRY);
        }
    }

    /// Starts or stops a group everywhere.
    pub(super) fn switch(&mut self, group: &OpenGroup, on: bool) {
        for leader in group.leaders() {
            let _ = if on { self.kernel.enable(leader) } else { self.kernel.disable(leader) };
        }
    }

    /// Whether a group ran anywhere since the last reading.
    fn ran(&self, group: &OpenGroup) -> bool {
        let running = |offset: usize| self.delta.get(offset + 1).is_some_and(|t| *t > 0);
        group.instances.iter().any(|i| running(i.offset))
    }
}

/// Adds the counts of `whole` in `delta` to its parts.
fn share(whole: &Whole, groups: &[OpenGroup], delta: &mut [u64]) {
    for instance in &whole.group.instances {
        for part in &groups[whole.parts.clone()] {
            let Some(own) = part.instances.iter().find(|i| i.spot == instance.spot) else {
                continue;
            };
            let event = |id| whole.group.events.iter().position(|e| e == id);
            let values = part.events.iter().map(|id| event(id).map(|at| 2 + at));
            for (to, from) in [Some(0), Some(1)].into_iter().chain(values).enumerate() {
                if let Some(from) = from {
                    delta[own.offset + to] += delta[instance.offset + from];
                }
            }
        }
    }
}
