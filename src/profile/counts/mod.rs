//! Recorded counts: the output of `perf stat`, toplev, CSV of one's own, and sessions.
//!
//! | file | concern |
//! |---|---|
//! | `recording` | [`Recording`]: counts as they were written, with their lines, or why a line is skipped |
//! | `builder` | rows into blocks: one per interval, scope and run |
//! | `perf_csv`, `perf_json`, `toplev`, `plain` | one line of each format |
//! | `decimal_commas` | a line of perf whose numbers have the separator in them |
//! | `formats` | kinds of files; formats of counts, of which help and errors are made |
//! | `reader`, `mistaken` | a file, from its lines to blocks; files that are given by mistake |
//! | `event_name`, `names` | event names as written → events of a table; tables that a recording fits |
//! | `groups` | which rows were counted together |
//! | `sessions`, `import` | a session, perf.data or recording and a table → [`Imported`] |
//!
//! Lines that cannot be parsed are listed, never dropped silently. Recorded values are scaled for
//! multiplexing already and are never scaled again.
//!
//! ```
//! use profile::counts::{self, Options};
//! use tma::quantity::Missing;
//! use tma::tables::Table;
//!
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("stat.csv");
//! // perf stat -x, writes value, unit, event, running time, percentage of the time it ran.
//! let lines = [
//!     "1000000,,ls_not_halted_cyc,250000000,25.00,,",
//!     "<not counted>,,ex_ret_instr,0,0.00,,",
//! ];
//! std::fs::write(&file, lines.join("\n"))?;
//!
//! let table = Table::parse(&std::fs::read_to_string("../../events/amd/zen4.toml")?, "zen4.toml")?;
//! let imported = counts::counts(&counts::read(&[file])?, &table, Options::default())?;
//! // One group, events in the order of the file. perf has scaled the value already.
//! let group = &imported.counts[0].groups[0];
//! assert_eq!((group.total(0), group.running_share()), (Ok(1e6), Some(0.25)));
//! assert!(matches!(group.total(1), Err(Missing::NotCounted(_))), "not a count of 0");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;
mod decimal_commas;
mod event_name;
mod formats;
mod groups;
mod import;
mod mistaken;
pub mod names;
mod perf_csv;
mod perf_json;
mod plain;
mod reader;
mod recording;
mod sessions;
mod toplev;

use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tma::counts::{Counts, GroupCounts};
use tma::quantity::Missing;
use tma::tables::{Const, EventId};

pub use formats::{CountFormat, FileKind, formats, formats_of_tools};
pub use import::{Options, counts};
pub use names::{Match, Names, TableMatch, best_tables, resolve};
pub use reader::{read, read_as};
pub use recording::{
    Block, Count, Metric, NameId, Recording, Row, SKIPPED_KEPT, Scope, ScopeKind, Skipped,
    SoftwareKind, Source, Unparsed,
};
pub use sessions::{Imported, Software, UnknownEvent};

/// Dimension to sum over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// CPUs, cores, sockets, threads: one result per interval.
    Scopes,
    /// Intervals: one result per scope.
    Intervals,
    /// Both: one result.
    All,
}

/// Counts that differ in one of these are not summed.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    core: Option<String>,
    scope: Option<String>,
    interval: Option<(Duration, Duration)>,
}

/// Sums `counts`, in order of first appearance, separately for each kind of core.
///
/// Over intervals, live readings are concatenated and stay live. Over CPUs, live groups become
/// imported ones, their totals: a sum of readings would lose the times they are scaled by.
///
/// Group by group, event by event: counts of different groups are never added. The running share of
/// a sum is the smallest of its parts. Over CPUs, an event that is missing in one part is missing in the sum. Over
/// intervals, one without any count adds nothing: nothing ran in it. A group that got no counter in an interval in
/// which others did is scaled from its other intervals by time; its running share falls accordingly and a
/// note states it.
pub fn aggregate(counts: &[Counts], over: Over) -> Vec<Counts> {
    let mut sums: Vec<(Key, Vec<&Counts>)> = Vec::new();
    let mut at: HashMap<Key, usize> = HashMap::new();
    for part in counts {
        let key = Key {
            core: part.core.clone(),
            scope: part.scope.clone().filter(|_| over == Over::Intervals),
            interval: part.interval.filter(|_| over == Over::Scopes),
        };
        let i = *at.entry(key.clone()).or_insert(sums.len());
        match sums.get_mut(i) {
            Some((_, parts)) => parts.push(part),
            None => sums.push((key, vec![part])),
        }
    }
    sums.into_iter().map(|(key, parts)| sum(key, &parts, over)).collect()
}

fn sum(of: Key, parts: &[&Counts], over: Over) -> Counts {
    let Key { core, scope, interval } = of;
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
            let events: Vec<EventId> = group.events().collect();
            let nth = seen.iter().filter(|s| **s == events).count();
            seen.push(events.clone());
            if !lists.contains(&(events.clone(), nth)) {
                lists.push((events, nth));
            }
        }
    }
    if over == Over::Intervals {
        let busy: Vec<&&Counts> =
            parts.iter().filter(|p| p.groups.iter().any(GroupCounts::has_counts)).collect();
        let busy = if busy.is_empty() { parts.iter().collect() } else { busy };
        let mut filled = false;
        let sums =
            lists.iter().map(|(events, nth)| over_intervals(events, *nth, &busy, &mut filled));
        total.groups = sums.collect();
        if filled {
            total.notes.push(
                "some groups got no counter in some intervals and are scaled from their other intervals"
                    .into(),
            );
        }
        return total;
    }
    total.groups = lists.iter().map(|(events, nth)| over_scopes(events, *nth, parts)).collect();
    total
}

fn nth_group(part: &Counts, list: &[EventId], nth: usize) -> Option<GroupCounts> {
    part.groups.iter().filter(|g| g.events().eq(list.iter().copied())).nth(nth).cloned()
}

/// Smallest running share of the groups that have one.
fn least_share(found: &[GroupCounts]) -> Option<f64> {
    found.iter().filter_map(GroupCounts::running_share).reduce(f64::min)
}

fn over_scopes(list: &[EventId], nth: usize, parts: &[&Counts]) -> GroupCounts {
    let found: Vec<Option<GroupCounts>> = parts.iter().map(|p| nth_group(p, list, nth)).collect();
    let total = |i: usize| {
        found.iter().try_fold(0.0, |sum, g| match g {
            Some(g) => g.total(i).map(|v| sum + v),
            None => Err(Missing::NotMeasured("not counted in every part of the sum".into())),
        })
    };
    let events = list.iter().enumerate().map(|(i, e)| (*e, total(i))).collect();
    let found: Vec<GroupCounts> = found.into_iter().flatten().collect();
    // A sum over CPUs is one reading of many counters, not many readings of one.
    GroupCounts::Imported { events, running: least_share(&found), intervals: Vec::new() }
}

/// Sums one group over the intervals in which something ran. Sets `filled` if it was not counted in
/// all of them.
fn over_intervals(
    list: &[EventId],
    nth: usize,
    parts: &[&&Counts],
    filled: &mut bool,
) -> GroupCounts {
    let found: Vec<Option<GroupCounts>> = parts.iter().map(|p| nth_group(p, list, nth)).collect();
    if let Some(whole) = joined(list, &found) {
        return whole;
    }
    let whole_of = |g: &GroupCounts| -> Option<Vec<f64>> {
        (0..list.len()).map(|i| g.total(i).ok()).collect()
    };
    let in_part = |g: &GroupCounts| (0..list.len()).any(|i| g.total(i).is_ok());
    let mixed = |g: &GroupCounts| in_part(g) && whole_of(g).is_none();
    if found.iter().flatten().any(mixed) {
        return event_by_event(list, &found);
    }
    let mut counted: Vec<(f64, Vec<f64>, GroupCounts)> = Vec::new();
    let mut time = 0.0;
    for (part, group) in parts.iter().zip(found.iter()) {
        let length = part.interval.map_or(1.0, |(begin, end)| (end - begin).as_secs_f64());
        time += length;
        if let Some((group, values)) = group.as_ref().and_then(|g| Some((g.clone(), whole_of(g)?)))
        {
            counted.push((length, values, group));
        }
    }
    let counted_time: f64 = counted.iter().map(|(length, ..)| length).sum();
    let Some((_, _, first)) = counted.first() else {
        // Counted in no interval: the reason of the first.
        let why = |i: usize| match found.iter().flatten().next().map(|g| g.total(i)) {
            Some(Err(why)) => why,
            _ => Missing::NotMeasured("not counted together in any interval".into()),
        };
        let events = list.iter().enumerate().map(|(i, e)| (*e, Err(why(i)))).collect();
        return GroupCounts::Imported { events, running: None, intervals: Vec::new() };
    };
    let share = if time > 0.0 { counted_time / time } else { 1.0 };
    *filled |= counted.len() < parts.len();
    let first_share = first.running_share();
    let groups: Vec<GroupCounts> = counted.iter().map(|(.., g)| g.clone()).collect();
    let sum = |i: usize| counted.iter().map(|(_, values, _)| values[i]).sum::<f64>() / share;
    GroupCounts::Imported {
        events: list.iter().enumerate().map(|(i, e)| (*e, Ok(sum(i)))).collect(),
        running: first_share.and_then(|_| least_share(&groups)).map(|s| s * share),
        intervals: counted.into_iter().map(|(_, values, _)| values).collect(),
    }
}

/// Sums a group that has intervals with counts of only some of its events: only events counted in
/// every interval, since nothing is known of the others.
fn event_by_event(list: &[EventId], found: &[Option<GroupCounts>]) -> GroupCounts {
    let total = |i: usize| {
        let counts = found.iter().map(|g| g.as_ref().and_then(|g| g.total(i).ok()));
        let missing = counts.clone().filter(Option::is_none).count();
        match missing {
            0 => Ok(counts.flatten().sum()),
            n => Err(Missing::NotMeasured(
                format!("it has no count in {n} of {} intervals", found.len()).into(),
            )),
        }
    };
    let events = list.iter().enumerate().map(|(i, e)| (*e, total(i))).collect();
    let groups: Vec<GroupCounts> = found.iter().flatten().cloned().collect();
    GroupCounts::Imported { events, running: least_share(&groups), intervals: Vec::new() }
}

/// Concatenates the live readings of successive intervals; `None` unless all counted ones are live.
/// An interval in which nothing ran adds nothing.
fn joined(list: &[EventId], found: &[Option<GroupCounts>]) -> Option<GroupCounts> {
    let mut whole = (Vec::new(), 0u64);
    for group in found {
        match group {
            Some(GroupCounts::Live { readings, enabled, .. }) => {
                whole.0.extend(readings.iter().cloned());
                whole.1 = whole.1.saturating_add(*enabled);
            }
            None | Some(GroupCounts::Missing { .. }) => {}
            Some(GroupCounts::Imported { .. }) => return None,
        }
    }
    let (readings, enabled) = whole;
    if readings.is_empty() {
        return None;
    }
    Some(GroupCounts::Live { events: list.to_vec(), readings, enabled })
}

/// Constants of the first part; durations of intervals add up, those of CPUs are the longest.
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
            // Parts of the same interval ran at the same time.
            Some(so_far) if again || over == Over::Scopes => so_far.max(ms),
            Some(so_far) => so_far + ms,
        });
    }
    constants[at] = duration;
    constants
}
