//! Counting that a control pipe switches on and off. While it is off, nothing is counted and its time does not pass.

use super::opened::{Counting, Opened, Whole};
use super::run::{CONTROL, Run};
use super::software;
use super::watch::NEVER;
use crate::kernel::Order;
use std::time::Duration;
use tma::text::several;

impl Run<'_, '_> {
    /// Whether counting is turned on and off.
    pub(super) fn is_controlled(&self) -> bool {
        self.request.control.is_some()
    }

    /// Nothing counts until it is turned on.
    pub(super) fn begin_off(&mut self, software: &mut software::Counters) {
        software.only_events();
        software.disable(self.kernel);
        self.switched.off = Some(self.kernel.now());
    }

    /// Carries out what was asked for, and acknowledges it. When the next reading is due, which was at `tick`.
    pub(super) fn carry_out(
        &mut self,
        order: Order,
        opened: &Opened,
        software: &mut software::Counters,
        tick: Duration,
    ) -> Duration {
        let now = self.kernel.now();
        let mut due = tick;
        match (order, self.switched.off) {
            (Order::Enable, Some(since)) => {
                self.switched.passed += now.saturating_sub(since);
                self.switched.off = None;
                self.switched.times += 1;
                due = now + self.switched.left.max(self.period / 2).min(self.period);
                self.resume(opened);
                software.enable(self.kernel);
                self.hooks.enable();
            }
            (Order::Disable, None) => {
                self.hooks.disable();
                self.disable(opened);
                software.disable(self.kernel);
                self.switched.off = Some(self.kernel.now());
                self.switched.left = tick.saturating_sub(now);
                due = self.begin + NEVER;
            }
            (Order::Unknown, _) => {
                self.switched.unknown += 1;
                return tick;
            }
            _ => {}
        }
        self.kernel.acknowledge();
        due
    }

    /// Starts the groups that counted before.
    fn resume(&mut self, opened: &Opened) {
        for (at, group) in opened.groups.iter().enumerate() {
            let waits =
                self.rotation.decks.iter().any(|d| d.groups.contains(&at) && !d.on.contains(&at));
            let wholes = opened.wholes.iter().zip(&self.counting);
            let is_whole = |(whole, counting): (&Whole, &Counting)| {
                whole.parts.contains(&at) && matches!(counting, Counting::Whole(_))
            };
            if !waits && !wholes.into_iter().any(is_whole) {
                self.switch(group, true);
            }
        }
        opened.references.iter().flatten().for_each(|group| self.switch(group, true));
        for (at, whole) in opened.wholes.iter().enumerate() {
            if self.counting[at] != Counting::Parts {
                self.switch(&whole.group, true);
            }
        }
    }

    /// Notes on the control pipe that a report must show.
    pub(super) fn control_notes(&self, at: Duration) -> Vec<String> {
        if !self.is_controlled() {
            return Vec::new();
        }
        let times = self.switched.times;
        let [on, all] = [self.switched.clock(at), at].map(|t| t.saturating_sub(self.begin));
        let mut notes = vec![match times {
            0 => format!("nothing was counted: no `enable` came through {CONTROL}"),
            _ => format!(
                "counted while {CONTROL} had it enabled: {:.3} s of {:.3} s, enabled {}",
                on.as_secs_f64(),
                all.as_secs_f64(),
                several(times, "time")
            ),
        }];
        if self.switched.unknown > 0 {
            notes.push(format!(
                "lines of {CONTROL} that are no commands (enable, disable and ping are): {}",
                self.switched.unknown
            ));
        }
        notes
    }
}
