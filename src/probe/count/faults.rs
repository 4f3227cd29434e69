//! Signals that the processor raised, such as SIGFPE: a handler may leave the block before its probe.

use super::request::FunctionCounts;
use super::uncounted::Uncounted;
use crate::facts::Function;
use crate::plan::Placement;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;

/// The interrupted instructions of a function: address (p_vaddr), signal, how often.
pub(super) struct Faults(Vec<(u64, i32, u64)>);

impl Faults {
    /// Of all that were interrupted in its file.
    pub fn of(all: &BTreeMap<u64, (i32, u64)>, function: &Function) -> Self {
        let within = |at: u64| function.blocks.iter().any(|b| (b.start..b.end).contains(&at));
        let found = all.iter().filter(|(at, _)| within(**at));
        Self(found.map(|(at, (signal, times))| (*at, *signal, *times)).collect())
    }

    /// How many signals there were: so much may be missing in the sums of counts.
    pub fn number(&self) -> u64 {
        self.0.iter().map(|(_, _, times)| times).sum()
    }

    /// Refuses the counts that such a signal may have made wrong: of its block, if the probe comes after
    /// the instruction, and all that are derived, edges too.
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
                block.count = Err(Uncounted::Left {
                    signal: Signal::try_from(*signal).ok(),
                    at: *at,
                    times: *times,
                    is_derived: *placement == Placement::Derived,
                });
            }
        }
    }
}
