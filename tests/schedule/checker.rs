//! An independent judge of plans: shares no code with the scheduler, reads only the table.
//!
//! A group is possible if each of its events has a counter of its own (`matching`).

use super::matching::{Place, maximum_flow};
use std::collections::{BTreeMap, BTreeSet};
use tma::schedule::Plan;
use tma::tables::{EventId, ExtraRegister, NodeId, NodeKind, PmuKind, Table};

/// The machine as a person would state it.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    pub smt: bool,
    pub watchdog: bool,
    /// General counters, where they are not the table's.
    pub general: Option<u32>,
}

pub struct Judge<'a> {
    pub table: &'a Table,
    pub machine: Machine,
}

impl Judge<'_> {
    fn general(&self) -> u32 {
        let c = &self.table.counters;
        let named = if self.machine.smt { c.general_smt } else { c.general };
        self.machine.general.unwrap_or(named)
    }

    fn has_fixed(&self, index: u32) -> bool {
        let c = &self.table.counters;
        index < c.fixed || (index == 3 && c.topdown_levels > 0)
    }

    fn is_slots(&self, e: EventId) -> bool {
        let s = &self.table.events[usize::from(e)].spec;
        s.fixed == Some(3) && s.fixed_only
    }

    /// Every counter that can count `e`; `None` for metric events, which take none.
    fn places(&self, e: EventId) -> Option<Vec<Place>> {
        let s = &self.table.events[usize::from(e)].spec;
        if s.metric.is_some() {
            return None;
        }
        let mut places = Vec::new();
        if let Some(f) = s.fixed.map(u32::from)
            && self.has_fixed(f)
        {
            places.push(Place::Fixed(f));
        }
        if !s.fixed_only {
            for g in 0..self.general() {
                if s.counters.as_ref().is_none_or(|list| list.iter().any(|c| u32::from(*c) == g)) {
                    places.push(Place::General(g));
                }
            }
        }
        Some(places)
    }

    fn watchdog_places(&self) -> Vec<Place> {
        let mut places: Vec<Place> = (0..self.general()).map(Place::General).collect();
        if self.has_fixed(1) {
            places.push(Place::Fixed(1));
        }
        places
    }

    /// The clock where the processor has no fixed counter for it.
    pub fn always(&self) -> Option<EventId> {
        let clocks = self.table.clocks;
        let core = self.table.events[usize::from(clocks)].spec.pmu == PmuKind::Core;
        let no_fixed = self.table.counters.fixed == 0 && self.table.counters.topdown_levels == 0;
        (core && no_fixed).then_some(clocks)
    }

    /// Whether these events, and what must be beside them, can be counted at once.
    pub fn possible(&self, events: &BTreeSet<EventId>) -> bool {
        let mut events = events.clone();
        let metric = |e: &EventId| self.table.events[usize::from(*e)].spec.metric;
        if let Some(deepest) = events.iter().filter_map(metric).max() {
            if u32::from(deepest) / 4 >= self.table.counters.topdown_levels {
                return false;
            }
            if !events.iter().any(|e| self.is_slots(*e)) {
                let all = 0..self.table.events.len() as EventId;
                let Some(slots) = all.into_iter().find(|e| self.is_slots(*e)) else { return false };
                events.insert(slots);
            }
        }
        if !events.is_empty() {
            events.extend(self.always());
        }
        let mut demands: Vec<Vec<Place>> = events.iter().filter_map(|e| self.places(*e)).collect();
        if self.machine.watchdog {
            demands.push(self.watchdog_places());
        }
        self.extra_registers(&events) && maximum_flow(&demands) == demands.len()
    }

    /// At most two off-core response values and one of each other kind.
    fn extra_registers(&self, events: &BTreeSet<EventId>) -> bool {
        let mut values: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        let mut fine = true;
        for e in events {
            let s = &self.table.events[usize::from(*e)].spec;
            let Some(register) = s.extra else { continue };
            let held = values.entry(format!("{register:?}")).or_default();
            held.insert(s.value.unwrap_or(0));
            let limit = if register == ExtraRegister::OffcoreRsp { 2 } else { 1 };
            fine &= held.len() <= limit;
        }
        fine
    }

    fn core_events(&self, n: NodeId) -> BTreeSet<EventId> {
        let events = self.table.events_of(n, self.machine.smt).iter().copied();
        events.filter(|e| self.table.events[usize::from(*e)].spec.pmu == PmuKind::Core).collect()
    }

    /// Everything wrong with `plan` for `nodes`.
    pub fn faults(&self, nodes: &[NodeId], plan: &Plan) -> Vec<String> {
        let mut faults = Vec::new();
        let groups: Vec<BTreeSet<EventId>> =
            plan.groups.iter().map(|g| g.events.iter().copied().collect()).collect();
        for (i, group) in plan.groups.iter().enumerate() {
            self.group_faults(i, &group.events, &groups[i], &mut faults);
        }
        for &n in nodes {
            self.node_faults(n, plan, &groups, &mut faults);
        }
        self.level_1_faults(nodes, plan, &groups, &mut faults);
        faults
    }

    fn group_faults(
        &self,
        i: usize,
        order: &[EventId],
        set: &BTreeSet<EventId>,
        faults: &mut Vec<String>,
    ) {
        if order.len() != set.len() {
            faults.push(format!("group {i} has an event twice"));
        }
        if !self.possible(set) {
            faults.push(format!("group {i} cannot be counted: {:?}", self.names(set)));
        }
        if self.always().is_some_and(|clock| !set.contains(&clock)) {
            faults.push(format!("group {i} lacks the clock"));
        }
        let metric = |e: &EventId| self.table.events[usize::from(*e)].spec.metric.is_some();
        let metrics = order.iter().filter(|e| metric(e)).count();
        if metrics > 0 {
            let after_slots = order[1..=metrics].iter().all(metric);
            if !self.is_slots(order[0]) || !after_slots {
                faults.push(format!("group {i} has metrics that slots do not lead"));
            }
        }
    }

    fn node_faults(
        &self,
        n: NodeId,
        plan: &Plan,
        groups: &[BTreeSet<EventId>],
        faults: &mut Vec<String>,
    ) {
        let id = &self.table.nodes[usize::from(n)].id;
        let events = self.core_events(n);
        if plan.unserved.iter().any(|(m, _)| *m == n) {
            let hopeless = self.table.events_of(n, self.machine.smt).iter().any(|e| {
                match self.table.events[usize::from(*e)].spec.pmu {
                    PmuKind::Uncore | PmuKind::Abstract => true,
                    PmuKind::Core => !self.possible(&BTreeSet::from([*e])),
                    _ => false,
                }
            });
            if !hopeless {
                faults.push(format!("{id} is not served although all its events can be counted"));
            }
            return;
        }
        let Some(placement) = plan.placement(n) else {
            faults.push(format!("{id} has no place"));
            return;
        };
        let there: BTreeSet<EventId> =
            placement.groups.iter().flat_map(|g| &groups[*g]).copied().collect();
        if !events.is_subset(&there) {
            faults.push(format!("{id} lacks events in its groups"));
        }
        if placement.groups.len() > 1 && self.possible(&events) {
            faults.push(format!("{id} is split although it fits into one group"));
        }
        if placement.is_split() {
            for &m in &self.table.nodes[usize::from(n)].uses[usize::from(self.machine.smt)] {
                let part = self.core_events(m);
                if self.possible(&part) && !groups.iter().any(|g| part.is_subset(g)) {
                    let part = &self.table.nodes[usize::from(m)].id;
                    faults.push(format!("{part}, which {id} reads, is not whole"));
                }
            }
        }
    }

    fn level_1_faults(
        &self,
        nodes: &[NodeId],
        plan: &Plan,
        groups: &[BTreeSet<EventId>],
        faults: &mut Vec<String>,
    ) {
        let level_1 = |n: &&NodeId| {
            let node = &self.table.nodes[usize::from(**n)];
            node.kind == NodeKind::Tree
                && node.level == 1
                && !plan.unserved.iter().any(|(m, _)| m == *n)
        };
        let together: BTreeSet<EventId> =
            nodes.iter().filter(level_1).flat_map(|n| self.core_events(*n)).collect();
        if together.is_empty() {
            return; // no core event: the paper's table
        }
        if self.possible(&together) && !groups.iter().any(|g| together.is_subset(g)) {
            faults.push("level 1 is split".into());
        }
    }

    fn names(&self, set: &BTreeSet<EventId>) -> Vec<&str> {
        set.iter().map(|e| self.table.events[usize::from(*e)].name.as_str()).collect()
    }

    /// The least number of groups for sets that each must stay whole, by trying everything.
    pub fn fewest_groups(&self, sets: &[BTreeSet<EventId>]) -> usize {
        let mut best = sets.len();
        self.try_all(sets, &mut Vec::new(), &mut best);
        best
    }

    fn try_all(
        &self,
        rest: &[BTreeSet<EventId>],
        groups: &mut Vec<BTreeSet<EventId>>,
        best: &mut usize,
    ) {
        if groups.len() >= *best && !rest.is_empty() {
            return;
        }
        let Some((set, rest)) = rest.split_first() else {
            *best = groups.len().min(*best);
            return;
        };
        for g in 0..groups.len() {
            let wider: BTreeSet<EventId> = groups[g].union(set).copied().collect();
            if self.possible(&wider) {
                let before = std::mem::replace(&mut groups[g], wider);
                self.try_all(rest, groups, best);
                groups[g] = before;
            }
        }
        groups.push(set.clone());
        self.try_all(rest, groups, best);
        groups.pop();
    }
}
