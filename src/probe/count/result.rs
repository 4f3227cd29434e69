//! Counters → counts of blocks and edges, of all processes together.

use super::counting::{Counting, Tally, first};
use super::counts::{
    BlockCount, BranchCount, Counts, EdgeCount, FunctionCounts, LoopCount, Uncounted,
};
use crate::facts::{Block, Function, Loop};
use crate::patch::{Patcher, Target, Trampolines, Unprobed, Wanted, notes};
use crate::plan::{Kind, Placement, Site, Solved, solve};
use crate::process::{Followed, Watched};
use nix::sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Outcome of a run or window.
pub(super) struct Run {
    pub wall: Duration,
    pub exit: Option<pmu::Exit>,
    pub interrupted: Option<i32>,
    /// Threads that may have been inside a block at the end, or at the beginning of a window.
    pub slack: u64,
    /// Processes that it started.
    pub processes: u32,
    /// It is a window: the process ran before and after.
    pub is_window: bool,
    /// Probes could not be removed.
    pub remains: bool,
    pub notes: Vec<String>,
}

impl Run {
    /// Run of a command. Threads that others end may be inside a block.
    pub fn of_command(followed: &Followed) -> Self {
        let Followed { wall, exit, interrupted, tasks, processes } = *followed;
        let killed = matches!(exit, Some(pmu::Exit::Signal(_)) | None);
        let slack = if tasks > 0 || killed { u64::from(tasks) + 1 } else { 0 };
        let (is_window, remains, notes) = (false, false, Vec::new());
        Self { wall, exit, interrupted, slack, processes, is_window, remains, notes }
    }

    /// Window of a process, from which `restored` old probes were removed before.
    pub fn of_window(watched: &Watched, restored: usize) -> Self {
        let Watched { wall, interrupted, tasks, ended, remains, .. } = watched;
        Self {
            wall: *wall,
            exit: None,
            interrupted: *interrupted,
            remains: remains.is_some() && !ended,
            slack: 2 * u64::from(*tasks),
            processes: 0,
            is_window: true,
            notes: notes(watched, restored),
        }
    }
}

/// What probes have found, by target.
pub(super) struct Found {
    targets: Arc<[Target]>,
    tallies: Vec<Tally>,
    /// Why a process was not fully probed.
    refused: Vec<Vec<Unprobed>>,
    /// Instructions interrupted by a signal of the processor → signal, number of times.
    faults: Vec<BTreeMap<u64, (i32, u64)>>,
    trampolines: Vec<Trampolines>,
    files: BTreeSet<PathBuf>,
}

impl Found {
    /// Ends the run.
    pub fn of(mut patcher: Patcher<Counting>) -> Self {
        patcher.finish();
        let Patcher { probes, targets, refused, faults, trampolines, files, .. } = patcher;
        Self { targets, tallies: probes.tallies, refused, faults, trampolines, files }
    }

    /// Adds what another window of the same targets found. What one could not probe another may have.
    pub fn add(&mut self, other: Self) {
        other.tallies.into_iter().for_each(|tally| tally.add_to(&mut self.tallies));
        for (own, more) in self.refused.iter_mut().zip(other.refused) {
            own.extend(more);
        }
        for tally in &self.tallies {
            self.refused[tally.target].clear();
        }
        for (own, more) in self.faults.iter_mut().zip(other.faults) {
            for (at, (signal, times)) in more {
                own.entry(at).or_insert((signal, 0)).1 += times;
            }
        }
    }
}

/// The counts of a run.
pub(super) fn counts(all: Found, wanted: &[Wanted], run: Run) -> Counts {
    let mut functions: Vec<Result<FunctionCounts, Uncounted>> =
        wanted.iter().map(|_| Err(Unprobed::NotMapped.into())).collect();
    for (number, target) in all.targets.iter().enumerate() {
        for (index, member) in target.functions.iter().enumerate() {
            functions[member.number] = function(&all, number, index, &run);
        }
    }
    let probes = all.tallies.iter().map(|tally| tally.probes).max().unwrap_or(0);
    let Run { wall, exit, interrupted, processes, remains, notes, .. } = run;
    let (trampolines, files) = (all.trampolines, all.files);
    Counts {
        functions,
        wall,
        exit,
        interrupted,
        unplanned: false,
        remains,
        probes,
        processes,
        trampolines,
        files,
        notes,
    }
}

/// Counts of a function, by the index of its target and its index in the target.
fn function(
    all: &Found,
    number: usize,
    index: usize,
    run: &Run,
) -> Result<FunctionCounts, Uncounted> {
    let target = &all.targets[number];
    if let Err(why) = &target.opened {
        return Err(Uncounted::File(target.path.clone(), why.clone()));
    }
    let facts = target.functions[index].facts.as_ref().map_err(Clone::clone)?;
    if let Some(why) = all.refused[number].first() {
        return Err(why.clone().into());
    }
    let faults = Faults::of(&all.faults[number], facts);
    let slack = run.slack + faults.number();
    let mut result = FunctionCounts { slack, ..FunctionCounts::default() };
    let mut any = false;
    for tally in all.tallies.iter().filter(|tally| tally.target == number) {
        let planned = tally.plans[index].as_ref().map_err(Clone::clone)?;
        let counters = tally.counts(first(target, index), facts.blocks.len());
        let counted: Vec<Option<i64>> = planned
            .placements
            .iter()
            .zip(counters)
            .map(|(placement, n)| match placement {
                placement if placement.is_counted() => i64::try_from(*n).ok(),
                _ => None,
            })
            .collect();
        let solved = solve(facts, &counted, slack.cast_signed());
        add(&mut result, facts, &planned.placements, &solved, run.is_window);
        faults.refuse(&mut result, &planned.placements);
        any = true;
    }
    if !any {
        return Err(Unprobed::NotMapped.into());
    }
    result.branches =
        facts.blocks.iter().filter_map(|block| branch(&result, facts, block)).collect();
    let loops = facts.loops.iter().map(|l| loop_count(&result, facts, l, run.is_window));
    result.loops = loops.collect();
    Ok(result)
}

/// The conditional jump at the end of a block.
fn branch(result: &FunctionCounts, facts: &Function, block: &Block) -> Option<BranchCount> {
    let last = block.instructions.last()?;
    if last.flow_control() != iced_x86::FlowControl::ConditionalBranch {
        return None;
    }
    let own = result.blocks.iter().find(|b| b.start == block.start)?.count.clone().ok();
    let edge = |to: u64| {
        let to = facts.blocks.iter().find(|b| b.start == to)?.start;
        result.edges.iter().find(|e| (e.from, e.to) == (block.start, to))?.count
    };
    let (target, next) = (last.near_branch_target(), last.next_ip());
    // A jump to the next instruction has one edge for both.
    let (taken, not_taken) = match target == next {
        true => (None, None),
        false => (edge(target), edge(next)),
    };
    let rest = |other: Option<u64>| own.zip(other).and_then(|(all, n)| all.checked_sub(n));
    let (taken, not_taken) = (taken.or(rest(not_taken)), not_taken.or(rest(taken)));
    Some(BranchCount { address: last.ip(), taken, not_taken })
}

fn loop_count(
    result: &FunctionCounts,
    facts: &Function,
    natural_loop: &Loop,
    is_window: bool,
) -> LoopCount {
    let head = facts.blocks[natural_loop.head].start;
    let iterations = result.blocks[natural_loop.head].count.clone();
    let back = |latch: &usize| {
        let from = facts.blocks[*latch].start;
        let edge = result.edges.iter().find(|e| (e.from, e.to) == (from, head));
        edge.and_then(|edge| edge.count).ok_or_else(|| match result.contradictions.is_empty() {
            true => {
                let none = result.blocks.iter().find(|block| block.count.is_err());
                Uncounted::Back(from, none.map(|block| block.start))
            }
            false => Uncounted::Function,
        })
    };
    let back: Result<u64, Uncounted> = natural_loop.latches.iter().map(back).sum();
    let entries = match (&iterations, back) {
        (Err(why), _) => Err(Uncounted::Head(why.clone().into())),
        // The share of each jump may be unknown, but not how often none went back.
        (Ok(all), Err(why)) => {
            // In a whole run each entry has at least one iteration.
            let possible =
                from_outside(result, facts, natural_loop).map(|(least, most)| match is_window {
                    true => (least, most),
                    false => (least.max(u64::from(*all > 0)), most.min(*all)),
                });
            match possible {
                Some((least, most)) if least == most => Ok(most),
                Some((_, most)) if most > 0 && !is_window => {
                    Err(Uncounted::AtMost { most, iterations: *all, why: why.into() })
                }
                _ => Err(why),
            }
        }
        (Ok(all), Ok(back)) => all.checked_sub(back).ok_or(Uncounted::Iterations(back, *all)),
    };
    let reason = entries.as_ref().err().cloned();
    LoopCount { head, entries: entries.ok(), iterations: iterations.ok(), reason }
}

/// Bounds of the number of entries of a loop, from the edges into it; an edge without a count has
/// at most what its block's other edges leave. `None` if it may be entered otherwise.
fn from_outside(
    result: &FunctionCounts,
    facts: &Function,
    natural_loop: &Loop,
) -> Option<(u64, u64)> {
    let head = &facts.blocks[natural_loop.head];
    if !facts.is_complete || head.is_entered || !result.contradictions.is_empty() {
        return None;
    }
    let is_latch =
        |from: u64| natural_loop.latches.iter().any(|latch| facts.blocks[*latch].start == from);
    let most = |edge: &EdgeCount| {
        let own =
            result.blocks.iter().find(|block| block.start == edge.from)?.count.clone().ok()?;
        let others = result.edges.iter().filter(|other| other.from == edge.from);
        Some(own.saturating_sub(others.filter_map(|other| other.count).sum()))
    };
    let mut edges = result.edges.iter().filter(|e| e.to == head.start && !is_latch(e.from));
    edges.try_fold((0, 0), |(low, high), edge| {
        Some(match edge.count {
            Some(count) => (low + count, high + count),
            None => (low, high + most(edge)?),
        })
    })
}

/// Contradictions of flow conservation beyond the permitted difference.
fn contradictions(at: impl Fn(usize) -> u64, solved: &Solved, is_window: bool) -> Vec<String> {
    // Calls in progress at the beginning or the end are counted in part.
    let suffix =
        if is_window { ", as calls in progress at the beginning or the end may" } else { "" };
    let sums = solved.contradictions.iter().map(|(block, sum, count)| match is_window {
        true => {
            format!("{:#x}: counted {count}, {sum} by its edges: they differ{suffix}", at(*block))
        }
        false => format!("{:#x}: counted {count}, its edges say {sum}", at(*block)),
    });
    let negative = solved.negative.iter().map(|(block, n)| {
        format!("{:#x}: {n} executions of it or of a jump at it would follow{suffix}", at(*block))
    });
    sums.chain(negative).collect()
}

/// Adds the counts of one process image.
fn add(
    result: &mut FunctionCounts,
    facts: &Function,
    placements: &[Placement],
    solved: &Solved,
    is_window: bool,
) {
    result.checked += solved.checked;
    let at = |block: usize| facts.blocks[block].start;
    result.contradictions.extend(contradictions(at, solved, is_window));
    if result.blocks.is_empty() {
        let block = |block: &Block| BlockCount {
            start: block.start,
            end: block.end,
            instructions: block.instructions.len(),
            count: Ok(0),
            kind: None,
        };
        result.blocks = facts.blocks.iter().map(block).collect();
        let edge = |(from, to, _): &(usize, usize, Option<i64>)| EdgeCount {
            from: facts.blocks[*from].start,
            to: facts.blocks[*to].start,
            count: Some(0),
        };
        result.edges = solved.edges.iter().map(edge).collect();
    }
    let consistent = solved.is_consistent();
    for ((block, placement), found) in result.blocks.iter_mut().zip(placements).zip(&solved.blocks)
    {
        let found = match placement {
            Placement::Refused(why) => Err(why.clone().into()),
            Placement::Derived if !consistent => Err(match is_window {
                true => Uncounted::Differing,
                false => Uncounted::Contradicted,
            }),
            Placement::Derived => number(*found),
            Placement::Placed(Site { kind, .. }) => {
                block.kind = Some(*kind);
                number(*found)
            }
            Placement::Within => {
                block.kind = Some(Kind::Multi);
                number(*found)
            }
        };
        block.count = match (std::mem::replace(&mut block.count, Ok(0)), found) {
            (Ok(sum), Ok(more)) => Ok(sum + more),
            (Err(why), _) | (_, Err(why)) => Err(why),
        };
    }
    for (edge, (_, _, found)) in result.edges.iter_mut().zip(&solved.edges) {
        let found = found.filter(|_| consistent).and_then(|n| u64::try_from(n.max(0)).ok());
        edge.count = edge.count.zip(found).map(|(sum, more)| sum + more);
    }
}

fn number(found: Option<i64>) -> Result<u64, Uncounted> {
    found.map(|n| n.max(0).cast_unsigned()).ok_or(Uncounted::Counter)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_said_as_what_it_is() {
        let solved = Solved {
            contradictions: vec![(0, 12, 10)],
            negative: vec![(1, -3)],
            ..Solved::default()
        };
        let at = |block: usize| 0x10 + block as u64;
        let run = contradictions(at, &solved, false);
        assert_eq!(run[0], "0x10: counted 10, its edges say 12");
        assert_eq!(run[1], "0x11: -3 executions of it or of a jump at it would follow");
        // A window may cut calls.
        let window = contradictions(at, &solved, true);
        assert!(window.iter().all(|text| text.contains("as calls in progress")), "{window:?}");
        assert!(window[0].starts_with("0x10: counted 10, 12 by its edges: they differ"));
    }
}
