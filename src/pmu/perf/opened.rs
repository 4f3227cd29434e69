//! The open groups of a run, their state while they are opened and counted, their random order, and what could not
//! be opened.

use super::place::{Coded, Spot};
use crate::kernel::{Handle, Subject};
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::time::Duration;
use tma::error::Error;
use tma::quantity::Missing;
use tma::tables::EventId;

/// Groups of a kind of core from which on the kernel's fixed order of slices, 4 ms each, comes so close to the length
/// of a program's phases that a group may always see the same part of them.
const ROTATED_FROM: usize = 8;

/// A group opened at every place of a run.
#[derive(Debug)]
pub struct OpenGroup {
    /// Which of the request's core types.
    pub core: usize,
    /// Its events, leader first; empty for the reference of a kind of core.
    pub events: Vec<EventId>,
    /// Its instances, one per place.
    pub instances: Vec<Instance>,
    /// Scopes with a place that refused the group, and why.
    pub refused: Vec<(usize, Missing)>,
}

/// Instances, by offset, whose last reading failed.
pub type Unread = BTreeMap<usize, Errno>;

/// A group at one place.
#[derive(Debug)]
pub struct Instance {
    /// Leader first.
    pub handles: Vec<Handle>,
    /// The place.
    pub spot: Spot,
    /// Scope of the place.
    pub scope: usize,
    /// Offset of its counts in a frame: enabled, running, values.
    pub offset: usize,
}

/// A group on standby: its parts are counted as long as it gets no counters as a whole.
#[derive(Debug)]
pub struct Whole {
    /// The group.
    pub group: OpenGroup,
    /// Its parts among [`Opened::groups`].
    pub parts: std::ops::Range<usize>,
}

/// Everything open in a run.
#[derive(Debug, Default)]
pub struct Opened {
    /// Groups in the order of the plan.
    pub groups: Vec<OpenGroup>,
    /// Groups that are counted in parts.
    pub wholes: Vec<Whole>,
    /// For each kind of core: the reference for the time of tasks on it, if needed.
    pub references: Vec<Option<OpenGroup>>,
    /// Events that cannot be counted, and why.
    pub missing: Vec<(usize, Vec<EventId>, Missing)>,
    /// Names of the scopes.
    pub scopes: Vec<Option<String>>,
    /// Whole CPUs are counted, not tasks.
    pub by_cpu: bool,
    /// References measure the time on each kind of core.
    pub by_kind: bool,
    /// Threads that had ended and CPUs that were offline.
    pub absent: Vec<Spot>,
    /// Words of a frame.
    pub width: usize,
    /// Kernel mode is not counted.
    pub user_only: bool,
    /// Notes that a report must show.
    pub notes: Vec<String>,
}

impl OpenGroup {
    pub(super) fn new(core: usize, events: Vec<EventId>) -> Self {
        Self { core, events, instances: Vec::new(), refused: Vec::new() }
    }

    /// The leader of each instance.
    pub(super) fn leaders(&self) -> impl Iterator<Item = Handle> {
        self.instances.iter().filter_map(|i| i.handles.first().copied())
    }

    /// Whether it was to be counted in `scope`.
    pub(super) fn is_in(&self, scope: usize) -> bool {
        let open = self.instances.iter().any(|i| i.scope == scope);
        open || self.refused.iter().any(|(s, _)| *s == scope)
    }

    /// Adds an instance; `width` is the width of a frame.
    pub(super) fn push(&mut self, handles: Vec<Handle>, spot: Spot, width: &mut usize) {
        let offset = *width;
        *width += 2 + handles.len();
        self.instances.push(Instance { handles, spot, scope: spot.scope, offset });
    }
}

impl Opened {
    /// Whether the groups of a kind of core are so many that they are multiplexed in our order.
    pub(super) fn is_rotated(&self, core: usize) -> bool {
        let groups = self.groups.iter().filter(|g| g.core == core && g.events.len() > 1);
        self.wholes.is_empty() && groups.count() >= ROTATED_FROM
    }

    /// The leaders of all groups that count from the start.
    pub fn leaders(&self) -> impl Iterator<Item = Handle> {
        let groups = self.groups.iter().chain(self.references.iter().flatten());
        groups.flat_map(OpenGroup::leaders)
    }

    /// All groups, those on standby and references included.
    pub fn all(&self) -> impl Iterator<Item = &OpenGroup> {
        let others = self.references.iter().flatten();
        self.groups.iter().chain(others).chain(self.wholes.iter().map(|w| &w.group))
    }

    pub(super) fn miss(&mut self, core: usize, id: EventId, why: Missing) {
        let missing = (core, vec![id], why);
        if !self.missing.contains(&missing) {
            self.missing.push(missing);
        }
    }

    /// Omits an absent place.
    pub(super) fn omit(&mut self, spot: &Spot) {
        if !self.absent.contains(spot) {
            self.absent.push(*spot);
        }
    }

    /// Notes the absent places.
    pub(super) fn note_absent(&mut self) {
        let list = |numbers: Vec<String>| match numbers.get(8..) {
            Some(rest @ [_, ..]) => format!("{} and {} more", numbers[..8].join(", "), rest.len()),
            _ => numbers.join(", "),
        };
        let task = |s: &Spot| match s.subject {
            Subject::Task(tid) => Some(tid.to_string()),
            _ => None,
        };
        let cpu = |s: &Spot| s.cpu.map(|c| c.to_string());
        let threads: Vec<String> = self.absent.iter().filter_map(task).collect();
        let cpus: Vec<String> = self.absent.iter().filter_map(cpu).collect();
        if !threads.is_empty() {
            let threads = list(threads);
            self.note(format!("threads that had ended before counting began: {threads}"));
        } else if !cpus.is_empty() {
            self.note(format!("CPUs that are offline and were not counted: {}", list(cpus)));
        }
    }

    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Order in which groups are enabled.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    /// For each kind of core whose groups are multiplexed in our order.
    pub decks: Vec<Deck>,
    random: u64,
}

#[derive(Debug)]
pub(super) struct Deck {
    /// Its groups, by index.
    pub groups: Vec<usize>,
    /// Groups not yet enabled in this round.
    waiting: Vec<usize>,
    /// Groups that are enabled.
    pub on: Vec<usize>,
}

impl Rotation {
    /// The order for `opened`, all of whose groups are enabled.
    pub(super) fn new(opened: &Opened, seed: u64) -> Self {
        let kinds = (0..opened.references.len()).filter(|core| opened.is_rotated(*core));
        let deck = |core: usize| {
            let of_kind = |g: &usize| opened.groups[*g].core == core;
            let groups: Vec<usize> = (0..opened.groups.len()).filter(of_kind).collect();
            Deck { waiting: Vec::new(), on: groups.clone(), groups }
        };
        Self { decks: kinds.map(deck).collect(), random: seed | 1 }
    }

    /// A random number from 0 to 1 (Marsaglia's xorshift64).
    pub(super) fn random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws `n` of a deck's groups, each once a round.
    pub(super) fn draw(&mut self, deck: usize, n: usize) -> Vec<usize> {
        let mut drawn = Vec::new();
        let all = self.decks[deck].groups.clone();
        while drawn.len() < n.min(all.len()) {
            if self.decks[deck].waiting.iter().all(|g| drawn.contains(g)) {
                let more = all.iter().filter(|g| !self.decks[deck].waiting.contains(g));
                let more: Vec<usize> = more.copied().collect();
                self.decks[deck].waiting.extend(more);
            }
            let at = (self.random() * self.decks[deck].waiting.len() as f64) as usize;
            let waiting = &mut self.decks[deck].waiting;
            let group = waiting.swap_remove(at.min(waiting.len() - 1));
            match drawn.contains(&group) {
                true => waiting.push(group),
                false => drawn.push(group),
            }
        }
        drawn
    }
}

/// Why opening stopped.
pub(super) enum Stop {
    Denied,
    Fatal(Error),
}

/// Result of opening a group at one place.
pub(super) enum Placed {
    /// Open, leader first.
    Open(Vec<Handle>),
    /// The thread has ended or the CPU is offline.
    Absent,
    /// The kernel refuses this event there.
    Refused(EventId, Errno),
}

/// How events are opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    /// Without kernel mode.
    pub user_only: bool,
    /// Started later, whatever the command does.
    pub standby: bool,
}

impl How {
    /// Counting from the start of the measurement.
    pub(super) fn from_start(user_only: bool) -> Self {
        Self { user_only, standby: false }
    }
}

/// A group that the kernel accepts, and its events where it is open already.
pub(super) struct Part {
    pub events: Vec<Coded>,
    pub open: Option<(Spot, Vec<Handle>)>,
}

impl Part {
    pub(super) fn new(events: Vec<Coded>) -> Self {
        Self { events, open: None }
    }
}

/// What a group needs of the counters of a kind of core; groups with equal needs fit alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CounterNeeds {
    pub core: usize,
    /// Of each event, sorted.
    pub needs: Vec<u64>,
}

impl CounterNeeds {
    /// Whether `other` needs all that this needs.
    pub(super) fn is_within(&self, other: &CounterNeeds) -> bool {
        let mut rest = other.needs.iter();
        self.core == other.core && self.needs.iter().all(|n| rest.any(|m| m == n))
    }
}

/// The parts or the whole of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    /// Its parts.
    Parts,
    /// Its parts; the whole is on trial since then.
    Trial(Duration),
    /// The whole; it last ran then.
    Whole(Duration),
}
