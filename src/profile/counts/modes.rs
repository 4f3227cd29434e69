//! Privilege modes: events of user mode and of kernel mode are of different time, and are never combined.

use super::names::{Match, Names};
use std::collections::HashSet;
use tma::tables::{EventId, PmuKind, Ring, Table};

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
pub fn shown(rows: &[Meaning], needs: &[&[EventId]]) -> Vec<Mode> {
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
