//! Sums over CPUs and over intervals, for a tree of the whole.
//!
//! Only what was counted by the same group in every part is summed: group by group, event by
//! event. An event that is missing in one part is missing in the sum. Groups of one part are
//! never added to each other. The running share of a sum is the smallest of its parts.

use crate::counts::{Counts, GroupCounts};
use crate::quantity::Missing;
use crate::tables::{Const, EventId};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// What to sum over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// CPUs, cores, sockets, threads: one result for each interval.
    Scopes,
    /// Intervals: one result for each scope.
    Intervals,
    /// Both: one result.
    All,
}

type Key = (Option<String>, Option<String>, Option<(Duration, Duration)>);

/// Sums `counts`, in order of first appearance; kinds of cores are kept apart.
///
/// Over intervals, live readings follow one another and stay live. Over CPUs they cannot be summed
/// without losing what they were scaled by, so live groups become imported ones: their totals.
pub fn aggregate(counts: &[Counts], over: Over) -> Vec<Counts> {
    let mut sums: Vec<(Key, Vec<&Counts>)> = Vec::new();
    let mut at: HashMap<Key, usize> = HashMap::new();
    for part in counts {
        let key = (
            part.core.clone(),
            part.scope.clone().filter(|_| over == Over::Intervals),
            part.interval.filter(|_| over == Over::Scopes),
        );
        let i = *at.entry(key.clone()).or_insert(sums.len());
        match sums.get_mut(i) {
            Some((_, parts)) => parts.push(part),
            None => sums.push((key, vec![part])),
        }
    }
    sums.into_iter().map(|(key, parts)| sum(key, &parts, over)).collect()
}

fn sum((core, scope, interval): Key, parts: &[&Counts], over: Over) -> Counts {
    let mut total = Counts { core, scope, interval, ..Counts::default() };
    for part in parts {
        for note in &part.notes {
            if !total.notes.contains(note) {
                total.notes.push(note.clone());
            }
        }
    }
    total.constants = constants(parts, over);
    let mut lists: Vec<(Vec<EventId>, usize)> = Vec::new();
    for part in parts {
        let mut seen: Vec<Vec<EventId>> = Vec::new();
        for group in &part.groups {
            let events = group.events();
            let nth = seen.iter().filter(|s| **s == events).count();
            seen.push(events.clone());
            if !lists.contains(&(events.clone(), nth)) {
                lists.push((events, nth));
            }
        }
    }
    total.groups = lists.iter().map(|(events, nth)| group(events, *nth, parts, over)).collect();
    total
}

fn group(list: &[EventId], nth: usize, parts: &[&Counts], over: Over) -> GroupCounts {
    let of = |part: &&Counts| -> Option<GroupCounts> {
        part.groups.iter().filter(|g| g.events() == list).nth(nth).cloned()
    };
    let found: Vec<Option<GroupCounts>> = parts.iter().map(of).collect();
    if over == Over::Intervals
        && let Some(whole) = joined(list, &found)
    {
        return whole;
    }
    let total = |i: usize| {
        found.iter().try_fold(0.0, |sum, g| match g {
            Some(g) => g.total(i).map(|v| sum + v),
            None => Err(Missing::NotMeasured("not counted in every part of the sum".into())),
        })
    };
    let running = found
        .iter()
        .flatten()
        .filter_map(GroupCounts::running_share)
        .fold(None, |least: Option<f64>, share| Some(least.map_or(share, |l| l.min(share))));
    let events = list.iter().enumerate().map(|(i, e)| (*e, total(i))).collect();
    let value = |g: &GroupCounts, i: usize| g.total(i).ok();
    let of_part = |g: &Option<GroupCounts>| -> Option<Vec<f64>> {
        let g = g.as_ref()?;
        (0..list.len()).map(|i| value(g, i)).collect()
    };
    // Sums over CPUs are one reading of many counters, not many readings of one.
    let intervals = match over {
        Over::Intervals => found.iter().map(of_part).collect::<Option<_>>().unwrap_or_default(),
        Over::Scopes | Over::All => Vec::new(),
    };
    GroupCounts::Imported { events, running, intervals }
}

/// Live readings of successive intervals, one behind the other; `None` unless all are live.
fn joined(list: &[EventId], found: &[Option<GroupCounts>]) -> Option<GroupCounts> {
    let mut whole = (Vec::new(), 0u64);
    for group in found {
        match group {
            Some(GroupCounts::Live { readings, enabled, .. }) => {
                whole.0.extend(readings.iter().cloned());
                whole.1 = whole.1.saturating_add(*enabled);
            }
            _ => return None,
        }
    }
    let (readings, enabled) = whole;
    Some(GroupCounts::Live { events: list.to_vec(), readings, enabled })
}

/// Constants of the first part; durations of intervals add up, those of CPUs are the same.
fn constants(parts: &[&Counts], over: Over) -> [Option<f64>; 5] {
    let mut constants = parts.first().map_or([None; 5], |p| p.constants);
    let at = Const::DurationMs.index();
    let mut spans = HashSet::new();
    let mut duration: Option<f64> = None;
    for part in parts {
        let Some(ms) = part.constants[at] else { continue };
        let again = !spans.insert(part.interval);
        duration = Some(match duration {
            None => ms,
            // Parts of the same interval, or of the same whole, ran at the same time.
            Some(so_far) if again || over == Over::Scopes => so_far.max(ms),
            Some(so_far) => so_far + ms,
        });
    }
    constants[at] = duration;
    constants
}
