//! The open groups of a run, and what could not be opened.

use super::place::Spot;
use crate::kernel::{Handle, Subject};
use nix::errno::Errno;
use std::collections::BTreeMap;
use tma::quantity::Missing;
use tma::tables::EventId;

/// Groups of a kind of core from which on the kernel's fixed order of slices, 4 ms each, comes so close to the length
/// of a program's phases that a group may always see the same part of them.
const ROTATED_FROM: usize = 8;

/// A group opened at every place of a run.
#[derive(Debug)]
pub struct OpenGroup {
    /// Which of the request's kinds of core.
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
