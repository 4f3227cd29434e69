//! Signals that the processor raised, such as SIGFPE: a handler may leave the block before its probe.

use super::request::FunctionCounts;
use super::uncounted::Uncounted;
use crate::facts::Function;
use crate::plan::Placement;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;

/// The interrupted instructions of a function: address (p_vaddr), signal, number of signals.
pub(super) struct Faults(Vec<(u64, i32, u64)>);

impl Faults {
    /// Selects the function's instructions from those of its file.
    pub fn of(all: &BTreeMap<u64, (i32, u64)>, function: &Function) -> Self {
        let within = |at: u64| function.blocks.iter().any(|b| (b.start..b.end).contains(&at));
        let found = all.iter().filter(|(at, _)| within(**at));
        Self(found.map(|(at, (signal, times))| (*at, *signal, *times)).collect())
    }

    /// Number of signals, by which sums of counts may be too low.
    pub fn number(&self) -> u64 {
        self.0.iter().map(|(_, _, times)| times).sum()
    }

    /// Refuses counts that a signal may have falsified: that of its block, if the probe is after
    /// the instruction, and all derived ones, including edges.
    pub fn refuse(&self, result: &mut FunctionCounts, placements: &[Placement]) {
        if !self.0.is_empty() {
            result.edges.iter_mut().for_each(|edge| edge.count = None);
        }
        for (block, placement) in result.blocks.iter_mut().zip(placements) {
            let is_left = |at: u64| match placement {
                Placement::Placed(site) => (block.start..site.at).contains(&at),
                Placement::Derived => true,
                Placement::Refused(_) | Placement::Within => false,
            };
            let Some((at, signal, times)) = self.0.iter().find(|(at, _, _)| is_left(*at)) else {
                continue;
            };
            if block.count.is_ok() {
                block.count = Err(Uncounted::Signalled {
                    signal: Signal::try_from(*signal).ok(),
                    at: *at,
                    times: *times,
                    is_derived: *placement == Placement::Derived,
                });
            }
        }
    }
}
