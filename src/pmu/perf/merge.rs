//! Merging several runs of a command into one measurement.

use super::outcome::RunResult;
use crate::{Exit, Measurement, Request, Software};
use std::time::Duration;
use tma::counts::{Counts, GroupCounts};
use tma::quantity::{Measured, Missing};
use tma::tables::Const;

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
    }
}
