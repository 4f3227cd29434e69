//! What further runs there will be, and what they take: before any is made, and from the one that counted.

use super::ask::Functions;
use super::further::{Counted, Further};
use super::known::Known;
use super::pieces::Function;
use super::schedule;
use super::windows::{SHARE, spread};
use crate::left::{Left, Times};
use estimate::Interval;
use iced_x86::FlowControl;
use report::documents::Purpose;
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

/// Time of further runs at most, about, as a multiple of the first.
pub(super) const MOST: f64 = 8.0;
/// The same with counts again, which decide on no part, where the first run took longer than so many seconds.
const MOST_AGAIN: f64 = 3.0;
const SHORT: f64 = 0.5;

/// Seconds of further runs at most, about, with counts again.
fn most(plain: f64) -> f64 {
    plain * if plain > SHORT { MOST_AGAIN } else { MOST }
}

/// Branches that are recorded at most (docs/method/probes.md), and in a second of bursts.
const RECORDED: f64 = 128.0 * 32768.0;
const A_SECOND: f64 = 4.2e7;
/// The share of a run in bursts: of all of it, which takes longer than without probes, and of windows of three kinds.
const IN_BURSTS: f64 = 0.3;
const IN_WINDOWS: f64 = 0.5 * SHARE / 3.0;
/// Seconds in which a model of predictors replays a branch, on a Zen 4.
const REPLAYED: f64 = 1.5e-7;
/// Models that replay them: sizes, and usually three rules of the targets of indirect branches.
const SIZES: f64 = 3.0;
const RULES: f64 = 3.0;

/// Seconds to replay what is recorded of the branches of these functions, in this share of a run of so many seconds.
fn replay(functions: &[Function], share: f64, plain: f64) -> f64 {
    let (mut all, mut are_indirect) = (0.0, false);
    for function in functions {
        for block in 0..function.flow.blocks.len() {
            let last = function.instructions(block).last();
            match last.map(|(_, last)| last.decoded.flow_control()) {
                Some(FlowControl::ConditionalBranch) => all += function.executed(block),
                Some(FlowControl::IndirectBranch | FlowControl::IndirectCall) => {
                    all += function.executed(block);
                    are_indirect |= function.executed(block) > 0.0;
                }
                _ => {}
            }
        }
    }
    let models = if are_indirect { SIZES * RULES } else { SIZES };
    let at_once = available_parallelism().map_or(1.0, |all| NonZero::get(all) as f64).min(models);
    let recorded = RECORDED.min(share * all).min(share * plain * A_SECOND);
    recorded * REPLAYED * models / at_once
}

/// The first run of a command, with what it takes, and what may follow, in words.
pub(super) fn counting(times: Times, found: &Functions) -> String {
    let first = Left { counts: 1, ..Left::default() };
    let (isolated, explained) = schedule::number(&found.hot);
    let all = Left {
        branches: true,
        loads: true,
        windows: spread(times.plain, 1).is_some(),
        pinned: found.parallel.is_some(),
        isolated,
        explained,
        counts: 2,
        ..first
    };
    let (first, all) = (first.interval(times), all.interval(times));
    // It is made whatever the budget.
    let times = Times { budget: times.budget.max(first.high), ..times };
    // Where nothing is to be recorded, it counts again.
    let all = Interval::new(all.value, 2.0 * first.low, all.high);
    format!("first a run that counts; with what its counts call for, {}", times.about(all, true))
}

impl Known<'_> {
    /// What follows the counts, as far as they show it.
    pub fn planned(&self, further: &Further, counted: &Counted, times: Times) -> Left {
        let branches = self.branches(counted);
        let windows = self.has_windows(further, times.plain);
        let pinned = self.found.parallel.is_some() && further.is_one_process();
        let left =
            Left { branches, loads: true, windows, pinned, is_open: true, ..Left::default() };
        let without = Left { loads: false, pinned: false, windows: windows && branches, ..left };
        let again_instead = self.with_again(without, times, times.counted).counts > 0;
        self.with_again(Left { again_instead, ..left }, times, times.counted)
    }

    /// Whether the command, which takes so many seconds, is recorded in windows of one run.
    fn has_windows(&self, further: &Further, plain: f64) -> bool {
        let is_command = self.ask.process.is_none();
        is_command && further.is_one_process() && spread(plain, 1).is_some()
    }

    /// With counts again, if there is time for that after so many seconds of runs.
    pub(super) fn with_again(&self, left: Left, times: Times, before: f64) -> Left {
        let again = Left { counts: 1, ..left };
        let all = Left { is_open: false, ..again }.interval(times).value + before;
        match self.ask.process.is_none() && all <= most(times.plain) {
            true => again,
            false => Left { counts: 0, ..left },
        }
    }

    /// The times of runs, after the one that counted, which took so long with the analysis before it.
    pub fn measured(&self, times: Times, further: &Further, took: Duration) -> Times {
        let counted = further.seconds_of(Purpose::Counts);
        let set_up = (took.as_secs_f64() - counted).max(0.0);
        let in_windows = self.has_windows(further, times.plain);
        let share = if in_windows { IN_WINDOWS } else { IN_BURSTS };
        let replay = replay(self.functions, share, times.plain);
        Times { counted, set_up, replay, has_counted: true, ..times }
    }
}
