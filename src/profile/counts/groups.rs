//! Infers which rows were counted together: perf's output does not mark groups. Events of user mode and of kernel mode are
//! of different time, and are never combined.
//!
//! The events of a group run at the same times. Adjacent rows with different running shares are of
//! different groups; if the shares agree to perf's two decimals, different running times (in
//! nanoseconds) separate groups, provided that the recording shows equal ones within a group.
//! Events that ran 100 % of the time ran together.
//!
//! The list of events repeats from interval to interval and from CPU to CPU, and so do its groups:
//! a boundary seen in one block holds in every block with the same list. Between two occurrences of
//! one event without a boundary, one is put where most of the table's nodes have all their events
//! in one group.

use super::names::{Match, Names};
use super::recording::{Block, Count, NameId, Recording, Row};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;
use tma::tables::{EventId, PmuKind, Ring, Table};

/// Longest distance between two occurrences of an event within which the best boundary is searched.
const SEARCHED: usize = 64;

/// perf prints running shares in percent with two decimals.
const SHARE_STEP: f64 = 0.5e-4;

/// Indices of the rows that were counted together, group by group.
type RowGroups = Rc<[Vec<usize>]>;

/// The inferred groups of every list of events in a recording.
pub struct Groups {
    boundaries: HashMap<Vec<NameId>, Vec<bool>>,
    found: RefCell<HashMap<(Mode, Vec<NameId>), RowGroups>>,
}

fn list_of(block: &Block) -> Vec<NameId> {
    block.rows.iter().map(|r| r.name).collect()
}

impl Groups {
    /// Collects the boundaries visible in the blocks of `recording`.
    pub fn new(recording: &Recording) -> Self {
        let mut boundaries: HashMap<Vec<NameId>, Vec<bool>> = HashMap::new();
        for block in &recording.blocks {
            let seen =
                boundaries.entry(list_of(block)).or_insert_with(|| vec![false; block.rows.len()]);
            for at in shown_boundaries(&block.rows) {
                seen[at] = true;
            }
        }
        Self { boundaries, found: RefCell::default() }
    }

    /// The groups of `block` as lists of indices into its rows. `event` maps a name to the table's
    /// event, the same for every block with the same list of names in `mode`; `cover` scores a set of events
    /// counted in one group.
    pub fn of(
        &self,
        block: &Block,
        mode: Mode,
        event: &dyn Fn(NameId) -> Option<EventId>,
        cover: &dyn Fn(&[EventId]) -> usize,
    ) -> RowGroups {
        if block.rows.iter().any(|r| r.group.is_some()) {
            return numbered(&block.rows).into();
        }
        let key = (mode, list_of(block));
        if let Some(found) = self.found.borrow().get(&key) {
            return Rc::clone(found);
        }
        let list = &key.1;
        let shown = self.boundaries.get(list);
        let starts_group = |at: usize| at == 0 || shown.is_some_and(|b| b[at]);
        let starts: Vec<usize> = (0..list.len()).filter(|&at| starts_group(at)).collect();
        let ends = starts.iter().skip(1).copied().chain([list.len()]);
        let events: Vec<Option<EventId>> = list.iter().map(|n| event(*n)).collect();
        let groups: RowGroups = starts
            .iter()
            .zip(ends)
            .flat_map(|(&start, end)| without_repeats(&events, start..end, cover))
            .map(|range| range.collect())
            .collect();
        self.found.borrow_mut().insert(key, Rc::clone(&groups));
        groups
    }
}

/// Groups by the recording's own group numbers, in order of first appearance.
fn numbered(rows: &[Row]) -> Vec<Vec<usize>> {
    let mut at: HashMap<Option<u32>, usize> = HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        let g = *at.entry(row.group).or_insert(groups.len());
        if g == groups.len() {
            groups.push(Vec::new());
        }
        groups[g].push(i);
    }
    groups
}

/// Indices of rows that start a group, judging by running shares and times.
fn shown_boundaries(rows: &[Row]) -> Vec<usize> {
    let counted = |r: &&(usize, &Row)| matches!(r.1.count, Count::Value(_));
    let all: Vec<(usize, &Row)> = rows.iter().enumerate().collect();
    let counted: Vec<&(usize, &Row)> = all.iter().filter(counted).collect();
    let pairs = || counted.windows(2).map(|w| (w[0], w[1]));
    let members_agree = pairs().any(|(a, b)| {
        is_multiplexed(a.1)
            && same_share(a.1, b.1)
            && a.1.run_time.is_some()
            && a.1.run_time == b.1.run_time
    });
    let apart = |a: &Row, b: &Row| {
        !same_share(a, b)
            || is_multiplexed(a)
                && members_agree
                && a.run_time.zip(b.run_time).is_some_and(|(a, b)| a != b)
    };
    // A row that was not counted stays in the group of the rows before it.
    pairs().filter(|(a, b)| apart(a.1, b.1)).map(|(_, b)| b.0).collect()
}

fn same_share(a: &Row, b: &Row) -> bool {
    match (a.running, b.running) {
        (Some(a), Some(b)) => (a - b).abs() < SHARE_STEP,
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn is_multiplexed(row: &Row) -> bool {
    row.running.is_some_and(|share| share < 1.0 - SHARE_STEP)
}

/// Cuts `range` so that no event occurs twice in a part.
fn without_repeats(
    events: &[Option<EventId>],
    range: Range<usize>,
    cover: &dyn Fn(&[EventId]) -> usize,
) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = range.start;
    let mut last_seen: HashMap<EventId, usize> = HashMap::new();
    let mut at = start;
    while at < range.end {
        let Some(event) = events[at] else {
            at += 1;
            continue;
        };
        match last_seen.insert(event, at) {
            Some(first) if first >= start => {
                let cut = best_cut(events, start, first, at, range.end, cover);
                parts.push(start..cut);
                start = cut;
                // The rows from the cut to here begin the new part.
                for (i, event) in events.iter().enumerate().take(at).skip(cut) {
                    if let Some(event) = event {
                        last_seen.insert(*event, i);
                    }
                }
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(start..range.end);
    parts
}

/// The best cut between `first` and `again`, two occurrences of one event.
fn best_cut(
    events: &[Option<EventId>],
    start: usize,
    first: usize,
    again: usize,
    end: usize,
    cover: &dyn Fn(&[EventId]) -> usize,
) -> usize {
    if first + 1 == again || again - start > SEARCHED {
        return again;
    }
    let held = |range: Range<usize>| -> Vec<EventId> {
        let mut held: Vec<EventId> = Vec::new();
        for event in events[range].iter().flatten() {
            if held.contains(event) {
                break;
            }
            held.push(*event);
        }
        held
    };
    let end = end.min(again + SEARCHED);
    let score = |cut: usize| cover(&held(start..cut)) + cover(&held(cut..end));
    // The earliest of the best: an event is repeated for the sake of those that follow it.
    (first + 1..=again).rev().max_by_key(|&cut| score(cut)).unwrap_or(again)
}

/// The mode of the events that a tree is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Events that were counted in all modes.
    All,
    /// Events that were counted in one.
    Only(Ring),
}

impl Mode {
    /// In words, for notes.
    pub fn name(self) -> &'static str {
        match self {
            Mode::All => "all modes",
            Mode::Only(Ring::User) => "user mode",
            Mode::Only(Ring::Kernel) => "kernel mode",
        }
    }

    /// A part of the machine in this mode.
    pub fn joined(self, scope: Option<String>) -> Option<String> {
        match (self, scope) {
            (Mode::All, scope) => scope,
            (_, None) => Some(self.name().to_owned()),
            (_, Some(scope)) => Some(format!("{scope} {}", self.name())),
        }
    }

    /// Note that a report must show with a tree of this mode alone.
    pub fn note(self) -> Option<String> {
        match self {
            Mode::All => None,
            Mode::Only(ring) => {
                let letter = if ring == Ring::User { 'u' } else { 'k' };
                Some(format!("{} only: the recording counted with `:{letter}`", self.name()))
            }
        }
    }
}

/// The meaning of a recorded name by mode.
#[derive(Debug, Clone, Copy)]
pub struct Meaning {
    /// In any mode.
    pub found: Match,
    /// The event that it counts in one mode.
    in_ring: Option<(EventId, Ring)>,
    /// Whether its counter knows no modes, or the table's event is of one mode itself.
    is_of_any: bool,
}

impl Default for Meaning {
    fn default() -> Self {
        Self { found: Match::Unknown, in_ring: None, is_of_any: false }
    }
}

impl Meaning {
    /// The meaning of a name in a table.
    pub fn of(name: &str, names: &Names<'_>, table: &Table) -> Self {
        let found = names.resolve(name);
        let Match::Event { id, only } = found else { return Self { found, ..Self::default() } };
        let spec = &table.events[usize::from(id)].spec;
        let is_of_any = only.is_none() && (spec.pmu != PmuKind::Core || spec.ring.is_some());
        Self { found, in_ring: names.in_ring(name), is_of_any }
    }

    /// Whether it is an event of the table.
    pub fn is_event(&self) -> bool {
        matches!(self.found, Match::Event { .. })
    }

    /// The event that it is in a tree of `mode`.
    pub fn in_mode(&self, mode: Mode) -> Option<EventId> {
        match (self.found, mode) {
            (Match::Event { id, only: None }, Mode::All) => Some(id),
            (Match::Event { id, .. }, Mode::Only(ring)) => match self.in_ring {
                Some((own, of)) if of == ring => Some(own),
                _ => self.is_of_any.then_some(id),
            },
            _ => None,
        }
    }
}

/// The modes of which a tree is shown: those whose events cover a node of level 1 (`needs` has the events of each). If
/// there is none, all modes if there are such events, else each that there is.
pub fn modes(rows: &[Meaning], needs: &[&[EventId]]) -> Vec<Mode> {
    let modes = [Mode::All, Mode::Only(Ring::User), Mode::Only(Ring::Kernel)];
    let is_own = |meaning: &&Meaning, mode| match mode {
        Mode::All => meaning.is_event() && !meaning.is_of_any,
        Mode::Only(ring) => meaning.in_ring.is_some_and(|(_, of)| of == ring),
    };
    let held = |mode| rows.iter().filter_map(|row| row.in_mode(mode)).collect::<HashSet<_>>();
    let has_own =
        |mode: &Mode| rows.iter().any(|row| is_own(&row, *mode) && row.in_mode(*mode).is_some());
    let covers = |mode: &Mode| {
        let held = held(*mode);
        needs.iter().any(|all| !all.is_empty() && all.iter().all(|event| held.contains(event)))
    };
    let present: Vec<Mode> = modes.into_iter().filter(has_own).collect();
    let covering: Vec<Mode> = present.iter().copied().filter(covers).collect();
    match (covering.is_empty(), present.first()) {
        (false, _) => covering,
        (true, Some(Mode::All)) => vec![Mode::All],
        (true, Some(_)) => present,
        // Events that know no modes, or none at all.
        (true, None) if rows.iter().any(Meaning::is_event) => vec![Mode::All],
        (true, None) => Vec::new(),
    }
}
