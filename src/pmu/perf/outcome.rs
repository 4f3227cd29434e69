//! The outcome of a run (its readings, how it ended, its result), and several runs of a command merged into one
//! measurement.
//!
//! The length of a measurement is unknown: there are at most [`MAX_FRAMES`] frames, of equal length. A frame is one flat
//! row of counts (of every group and every CPU or thread). When the maximum is reached, adjacent frames are merged, and
//! from then on each frame takes twice as many readings.

use super::software;
use crate::{Exit, Measurement, Request, Software};
use std::time::Duration;
use tma::counts::{Counts, GroupCounts};
use tma::quantity::{Measured, Missing};
use tma::tables::Const;

/// Result of a run.
#[derive(Debug)]
pub struct RunResult {
    /// Counts by kind of core and scope.
    pub counts: Vec<Counts>,
    /// Software counts.
    pub software: Software,
    /// How the command ended, unless this program ended it.
    pub exit: Option<Exit>,
    /// The signal that ended the run early.
    pub interrupted: Option<i32>,
    /// Kernel mode was not counted.
    pub user_only: bool,
    /// Time on each kind of core, nanoseconds; empty unless hybrid.
    pub core_time: Vec<Option<u64>>,
    /// Notes that a report must show.
    pub notes: Vec<String>,
    /// Notes in `notes` on the control pipe.
    pub of_control: Vec<String>,
}

/// How the counting ended.
pub(super) struct End {
    /// When.
    pub(super) at: Duration,
    /// The software counts then, if the counted tasks go on.
    pub(super) software: Option<software::Totals>,
    pub(super) interrupted: Option<i32>,
    /// The command is still running and has to be ended.
    pub(super) forced: bool,
}

/// The readings of a whole run or of one interval.
pub(super) struct Readings {
    pub(super) frames: Frames,
    pub(super) software: software::Totals,
    pub(super) since: Duration,
    /// How long events had counted then.
    pub(super) clock: Duration,
}

/// Maximum number of frames; merging halves it. The jackknife needs 8 or more.
pub const MAX_FRAMES: usize = 64;

/// Frames of counts.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    frames: Vec<Vec<u64>>,
    stride: u32,
    filled: u32,
}

impl Frames {
    /// No frames.
    pub fn new() -> Self {
        Self { frames: Vec::new(), stride: 1, filled: 0 }
    }

    /// Adds the counts since the previous reading; whether frames were merged.
    pub fn push(&mut self, delta: &[u64]) -> bool {
        match self.frames.last_mut() {
            Some(last) if self.filled < self.stride => add(last, delta),
            _ => {
                self.frames.push(delta.to_vec());
                self.filled = 0;
            }
        }
        self.filled += 1;
        if self.frames.len() < MAX_FRAMES || self.filled < self.stride {
            return false;
        }
        self.merge();
        true
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Merges adjacent frames; the next frames take twice as many readings.
    pub fn merge(&mut self) {
        let old = std::mem::take(&mut self.frames);
        let mut old = old.into_iter();
        while let Some(mut first) = old.next() {
            if let Some(second) = old.next() {
                add(&mut first, &second);
            }
            self.frames.push(first);
        }
        self.stride = self.stride.saturating_mul(2);
        self.filled = self.stride;
    }

    /// Readings come half as often from now on: frames take half as many.
    pub fn halve_rate(&mut self) {
        self.stride = (self.stride / 2).max(1);
        self.filled = self.stride;
    }

    /// The frames, oldest first. A last frame shorter than half of the others is merged with the one
    /// before, because frames are assumed to be of equal length.
    pub fn finish(mut self) -> Vec<Vec<u64>> {
        if self.frames.len() > 1
            && self.filled * 2 < self.stride
            && let Some(rest) = self.frames.pop()
            && let Some(last) = self.frames.last_mut()
        {
            add(last, &rest);
        }
        self.frames
    }
}

fn add(to: &mut [u64], from: &[u64]) {
    for (t, f) in to.iter_mut().zip(from) {
        *t = t.saturating_add(*f);
    }
}

/// Merges `repeats` (each has one result per part of the plan).
pub fn measurement(request: &Request<'_>, repeats: Vec<Vec<RunResult>>) -> Measurement {
    let runs: Vec<&RunResult> = repeats.iter().flatten().collect();
    let exits = || runs.iter().filter_map(|r| r.exit);
    let bad = exits().find(|e| e.code() != 0);
    let notes = once(runs.iter().flat_map(|r| &r.notes));
    let of_control = once(runs.iter().flat_map(|r| &r.of_control));
    let software: Vec<Software> = runs.iter().map(|r| r.software.clone()).collect();
    let exit: Option<Exit> = bad.or_else(|| exits().next_back());
    let interrupted = runs.iter().find_map(|r| r.interrupted);
    let user_only = runs.iter().any(|r| r.user_only);
    let core_time = core_time(request, &runs);
    let each: Vec<Vec<Counts>> = repeats.into_iter().map(one_repeat).collect();
    let counts = each.iter().cloned().reduce(add_repeat).unwrap_or_default();
    Measurement {
        counts,
        repeats: if each.len() > 1 { each } else { Vec::new() },
        software: mean(&software),
        runs: software,
        exit,
        interrupted,
        user_only,
        core_time,
        notes,
        of_control,
    }
}

/// Each note once.
fn once<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in all {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
}

fn core_time(request: &Request<'_>, runs: &[&RunResult]) -> Vec<(String, Duration)> {
    let mut all = Vec::new();
    for (at, core) in request.cores.iter().enumerate() {
        let times = runs.iter().filter_map(|r| r.core_time.get(at).copied().flatten());
        if let Some(total) = times.reduce(|a, b| a + b) {
            all.push((core.table.name.clone(), Duration::from_nanos(total)));
        }
    }
    all
}

/// Merges the parts of one repeat, which counted different groups. The duration is their mean.
fn one_repeat(parts: Vec<RunResult>) -> Vec<Counts> {
    let n = parts.len().max(1) as f64;
    let mut all: Vec<Counts> = Vec::new();
    for counts in parts.into_iter().flat_map(|p| p.counts) {
        match same(&mut all, &counts) {
            Some(known) => {
                known.groups.extend(counts.groups);
                add_time(known, &counts.constants);
            }
            None => all.push(counts),
        }
    }
    for counts in &mut all {
        if let Some(ms) = &mut counts.constants[Const::DurationMs.index()] {
            *ms /= n;
        }
    }
    all
}

/// Adds another repeat: readings are concatenated, times added.
fn add_repeat(mut sum: Vec<Counts>, next: Vec<Counts>) -> Vec<Counts> {
    for counts in next {
        let Some(known) = same(&mut sum, &counts) else {
            sum.push(counts);
            continue;
        };
        add_time(known, &counts.constants);
        for group in counts.groups {
            add_group(&mut known.groups, group);
        }
    }
    sum
}

fn same<'a>(all: &'a mut [Counts], counts: &Counts) -> Option<&'a mut Counts> {
    all.iter_mut().find(|c| c.core == counts.core && c.scope == counts.scope)
}

fn add_time(to: &mut Counts, constants: &[Option<f64>; 5]) {
    let at = Const::DurationMs.index();
    if let (Some(ms), Some(more)) = (&mut to.constants[at], constants[at]) {
        *ms += more;
    }
}

/// Merges `group` into the one of the same events; a counted group replaces a missing one.
fn add_group(groups: &mut Vec<GroupCounts>, group: GroupCounts) {
    let Some(known) = groups.iter_mut().find(|g| g.events().eq(group.events())) else {
        groups.push(group);
        return;
    };
    match (&mut *known, group) {
        (
            GroupCounts::Live { readings, enabled, .. },
            GroupCounts::Live { readings: more, enabled: time, .. },
        ) => {
            readings.extend(more);
            *enabled += time;
        }
        (GroupCounts::Missing { .. }, other) => *known = other,
        _ => {}
    }
}

/// The mean of all runs; a count that is missing in one of them is missing.
fn mean(runs: &[Software]) -> Software {
    let Some(first) = runs.first() else {
        return Software::missing(&Missing::NotMeasured("the command was not run".into()));
    };
    let n = runs.len() as f64;
    let mean = |get: fn(&Software) -> &Measured| -> Measured {
        let mut sum = 0.0;
        for run in runs {
            sum += get(run).clone()?;
        }
        Ok(sum / n)
    };
    let walls: Duration = runs.iter().map(|r| r.wall).sum();
    if runs.len() == 1 {
        return first.clone();
    }
    Software {
        wall: walls.div_f64(n),
        task_clock: mean(|s| &s.task_clock),
        // The error of repeated runs is estimated from their differences.
        task_clock_error: None,
        context_switches: mean(|s| &s.context_switches),
        migrations: mean(|s| &s.migrations),
        page_faults: mean(|s| &s.page_faults),
        major_faults: mean(|s| &s.major_faults),
        queued: mean(|s| &s.queued),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_and_never_more_than_64_frames_are_kept() {
        for n in [1u64, 7, 63, 64, 65, 127, 128, 1000, 12_345] {
            let mut frames = Frames::new();
            for i in 0..n {
                frames.push(&[i, 1]);
            }
            let frames = frames.finish();
            assert!(frames.len() <= MAX_FRAMES);
            assert!(frames.len() >= 31.min(n as usize), "{n} readings gave {}", frames.len());
            assert_eq!(frames.iter().map(|f| f[1]).sum::<u64>(), n);
            assert_eq!(frames.iter().map(|f| f[0]).sum::<u64>(), n * (n - 1) / 2);
        }
    }

    #[test]
    fn frames_are_of_equal_length_but_for_the_last() {
        let mut frames = Frames::new();
        for _ in 0..1000 {
            frames.push(&[1]);
        }
        let frames = frames.finish();
        let (last, all) = frames.split_last().expect("frames");
        assert!(all.iter().all(|f| f[0] == all[0][0]));
        assert!(last[0] * 2 >= all[0][0]);
    }
}
