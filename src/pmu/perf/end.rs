//! Ends a run: the command's end, and the result: readings → [`Counts`], one for each kind of core and scope.
//!
//! Tasks: counts and times of all threads are summed, then scaled (as the kernel does with inherited children). CPUs: each
//! is scaled by its own running share before summing, as perf stat does, because the share differs if another program holds
//! counters of a CPU.

use super::opened::{Instance, OpenGroup, Opened, Unread};
use super::outcome::{End, RunResult};
use super::run::Run;
use crate::kernel::{Usage, Wake};
use crate::{Exit, Request, Software};
use std::time::Duration;
use tma::counts::{Counts, GroupCounts, Reading};
use tma::quantity::Missing;

/// Time between SIGTERM and SIGKILL.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);

impl Run<'_, '_> {
    /// Ends the command if it is still running; how it ended.
    pub(super) fn finish_command(&mut self, end: &End) -> Option<(Exit, Usage)> {
        self.request.command.as_ref()?;
        if end.forced {
            self.kernel.signal(libc::SIGTERM);
            let mut deadline = Some(self.kernel.now() + TERM_TIMEOUT);
            // Kills it after the timeout or another signal.
            while let wake @ (Wake::Signal { .. } | Wake::Time | Wake::Control(_)) =
                self.kernel.wait(deadline)
            {
                if matches!(wake, Wake::Control(_)) {
                    // The command itself may be blocked on the acknowledgement.
                    self.kernel.acknowledge();
                    continue;
                }
                self.kernel.signal(libc::SIGKILL);
                self.killed |= wake == Wake::Time;
                deadline = None;
            }
        }
        self.kernel.reap()
    }

    pub(super) fn result(
        &self,
        opened: &Opened,
        frames: &[Vec<u64>],
        software: Software,
        end: &End,
        exit: Option<Exit>,
    ) -> RunResult {
        let counts = counts(self.request, opened, frames, &self.unread, software.wall);
        let mut notes = opened.notes.clone();
        let of_control = self.control_notes(end.at);
        notes.extend(of_control.iter().cloned());
        if self.rejoined {
            notes
                .push("counters became free: groups that had been split were counted whole".into());
        }
        if !self.left.is_empty() {
            let left: Vec<String> = self.left.iter().map(u32::to_string).collect();
            notes.push(format!(
                "CPUs that went offline during the measurement: {}; their counts end there",
                left.join(", ")
            ));
        }
        if self.late_readings {
            notes.push(
                "the kernel refused some readings; later readings include their counts".into(),
            );
        }
        if self.request.command.is_some() && exit.is_none() {
            notes.push("how the command ended is unknown: something else waited for it".into());
        }
        if end.forced && end.interrupted.is_none() && self.request.command.is_some() {
            notes.push("the command was ended when the time was up".into());
        }
        if self.killed {
            let seconds = TERM_TIMEOUT.as_secs();
            notes.push(format!("the command did not end by SIGTERM in {seconds} s and was killed"));
        }
        RunResult {
            counts,
            software,
            // Ended by this program when the time was up: no failure of the command.
            exit: exit.filter(|_| !end.forced || end.interrupted.is_some()),
            interrupted: end.interrupted,
            user_only: opened.user_only,
            core_time: core_time(opened, frames, &self.unread),
            notes,
            of_control,
        }
    }
}

/// The counts of all groups in `frames`, which took `wall` time; `unread` are those whose last
/// reading failed.
pub fn counts(
    request: &Request<'_>,
    opened: &Opened,
    frames: &[Vec<u64>],
    unread: &Unread,
    wall: Duration,
) -> Vec<Counts> {
    let mut all = Vec::new();
    for (core, plan) in request.cores.iter().enumerate() {
        let hybrid = request.cores.len() > 1 || plan.table.core.is_some();
        for (scope, label) in opened.scopes.iter().enumerate() {
            let reference = opened.references.get(core).and_then(Option::as_ref);
            let reference_lost = reference.and_then(|r| lost(r, scope, unread));
            let enabled = reference.map(|r| sum(frames, r, scope, RUNNING));
            let mut groups: Vec<GroupCounts> = opened
                .groups
                .iter()
                .filter(|g| g.core == core)
                .filter(|g| g.is_in(scope))
                .map(|g| match lost(g, scope, unread).or(reference_lost.clone()) {
                    Some(why) => GroupCounts::Missing { events: g.events.clone(), why },
                    None => group(opened, g, scope, frames, enabled),
                })
                .collect();
            if groups.is_empty() && opened.groups.iter().any(|g| g.core == core) {
                continue; // a CPU of the other kind of core
            }
            let missing = opened.missing.iter().filter(|(c, ..)| *c == core);
            groups.extend(missing.map(|(_, events, why)| GroupCounts::Missing {
                events: events.clone(),
                why: why.clone(),
            }));
            let mut notes = Vec::new();
            if opened.user_only && !opened.groups.is_empty() {
                notes.push("user mode only: PMU counts exclude the kernel".into());
            }
            all.push(Counts {
                core: hybrid.then(|| plan.table.name.clone()),
                scope: label.clone(),
                interval: None,
                groups,
                constants: request.machine.constants(wall.as_secs_f64() * 1e3),
                notes,
            });
        }
    }
    all
}

/// Why a group has no counts in `scope`: a place refused it, or its last reading failed, so that an
/// unknown part is missing.
fn lost(group: &OpenGroup, scope: usize, unread: &Unread) -> Option<Missing> {
    let refused = group.refused.iter().find(|(s, _)| *s == scope).map(|(_, why)| why.clone());
    refused.or_else(|| {
        let mut here = group.instances.iter().filter(|i| i.scope == scope);
        let errno = here.find_map(|i| unread.get(&i.offset))?;
        let why = format!("the kernel refused to read its counters ({})", errno.desc());
        Some(Missing::NotMeasured(why.into()))
    })
}

/// Nanoseconds of tasks on each kind of core, if known.
pub fn core_time(opened: &Opened, frames: &[Vec<u64>], unread: &Unread) -> Vec<Option<u64>> {
    let scopes = || 0..opened.scopes.len();
    let known = |r: &&OpenGroup| scopes().all(|scope| lost(r, scope, unread).is_none());
    let total = |r: &OpenGroup| scopes().map(|scope| sum(frames, r, scope, RUNNING)).sum();
    let by_kind = |_: &&OpenGroup| opened.by_kind;
    let of_kind = opened.references.iter().map(|r| r.as_ref().filter(by_kind));
    of_kind.map(|r| r.filter(known).map(total)).collect()
}

/// Offsets inside an instance's words.
const ENABLED: usize = 0;
const RUNNING: usize = 1;
const VALUES: usize = 2;

fn word(frame: &[u64], instance: &Instance, at: usize) -> u64 {
    frame.get(instance.offset + at).copied().unwrap_or(0)
}

fn sum(frames: &[Vec<u64>], group: &OpenGroup, scope: usize, at: usize) -> u64 {
    let here = group.instances.iter().filter(|i| i.scope == scope);
    here.map(|i| frames.iter().map(|f| word(f, i, at)).sum::<u64>()).sum()
}

fn group(
    opened: &Opened,
    group: &OpenGroup,
    scope: usize,
    frames: &[Vec<u64>],
    reference: Option<u64>,
) -> GroupCounts {
    let events = group.events.clone();
    let instances: Vec<&Instance> = group.instances.iter().filter(|i| i.scope == scope).collect();
    let enabled = reference.unwrap_or_else(|| sum(frames, group, scope, ENABLED));
    if enabled == 0 {
        let why = if opened.by_kind && reference.is_some() {
            "no task ran on this kind of core"
        } else {
            "no task ran while it was counted"
        };
        return GroupCounts::Missing { events, why: Missing::NotMeasured(why.into()) };
    }
    let weights = if opened.by_cpu { weights(frames, &instances) } else { None };
    let readings = frames
        .iter()
        .map(|frame| Reading {
            enabled: instances.iter().map(|i| word(frame, i, ENABLED)).sum(),
            running: instances.iter().map(|i| word(frame, i, RUNNING)).sum(),
            values: (0..events.len()).map(|e| value(frame, &instances, e, &weights)).collect(),
        })
        .filter(|r| r.running > 0)
        .collect();
    GroupCounts::Live { events, readings, enabled }
}

fn value(frame: &[u64], instances: &[&Instance], event: usize, weights: &Option<Vec<f64>>) -> u64 {
    let raw = instances.iter().map(|i| word(frame, i, VALUES + event));
    match weights {
        None => raw.sum(),
        Some(weights) => raw.zip(weights).map(|(v, w)| v as f64 * w).sum::<f64>().round() as u64,
    }
}

/// Factors for each CPU's counts, so that scaling their sum by the common share gives the sum of
/// counts scaled by each CPU's share: (Eᵢ/Rᵢ) / (E/R). CPUs on which the group never ran are assumed
/// to be like the others. `None` if all shares are equal.
fn weights(frames: &[Vec<u64>], instances: &[&Instance]) -> Option<Vec<f64>> {
    let total = |i: &&Instance, at| frames.iter().map(|f| word(f, i, at)).sum::<u64>() as f64;
    let times: Vec<(f64, f64)> =
        instances.iter().map(|i| (total(i, ENABLED), total(i, RUNNING))).collect();
    let enabled: f64 = times.iter().map(|t| t.0).sum();
    let running: f64 = times.iter().map(|t| t.1).sum();
    let covered: f64 = times.iter().filter(|t| t.1 > 0.0).map(|t| t.0).sum();
    if running <= 0.0 || covered <= 0.0 {
        return None;
    }
    let common = covered / running;
    let weight = |(e, r): &(f64, f64)| if *r > 0.0 { e / r / common } else { 0.0 };
    let weights: Vec<f64> = times.iter().map(weight).collect();
    debug_assert!(enabled >= covered);
    weights.iter().any(|w| *w != 0.0 && (w - 1.0).abs() > 1e-9).then_some(weights)
}
