//! Counts → the value of every node and its running share, in a working memory of scaled counts by group, node values by
//! group, and final values.

use super::layout::{Layout, Place, Split, ambient};
use super::{Evaluation, NodeResult};
use crate::counts::{Counts, GroupCounts};
use crate::formula::{Inputs, Leaf, Program};
use crate::quantity::{Missing, Quantity};
use crate::tables::{Const, NodeId, Table};
use smol_str::{SmolStr, format_smolstr};
use std::sync::Arc;

/// Evaluates a table over and over: the arrangement of groups is worked out once.
#[derive(Debug)]
pub struct Evaluator<'t> {
    pub(super) table: &'t Table,
    layout: Option<Arc<Layout>>,
    pub(super) scratch: Scratch,
}

impl<'t> Evaluator<'t> {
    /// An evaluator for `table`. Where the counts say nothing of SMT, it is taken as off.
    pub fn new(table: &'t Table) -> Self {
        Self { table, layout: None, scratch: Scratch::default() }
    }

    /// Values, running shares and thresholds, without errors: enough for one time interval of many.
    pub fn values(&mut self, counts: &Counts) -> Evaluation {
        let layout = self.arranged(counts);
        let Self { table, scratch, .. } = self;
        scratch.load(table, counts);
        for &n in &table.order {
            scratch.compute(table, &layout, n);
        }
        let nodes = (0..table.nodes.len()).map(|n| result(table, &layout, scratch, counts, n));
        let mut evaluation = Evaluation { nodes: nodes.collect(), layout };
        thresholds(table, scratch, &mut evaluation);
        evaluation
    }

    /// Makes or reuses the layout: it changes only with the set of counted events.
    fn arranged(&mut self, counts: &Counts) -> Arc<Layout> {
        let smt = counts.constants[Const::SmtOn.index()].is_some_and(|v| v != 0.0);
        match &self.layout {
            Some(layout) if layout.is_for(self.table, counts, smt) => Arc::clone(layout),
            _ => Arc::clone(self.layout.insert(Arc::new(Layout::new(self.table, counts, smt)))),
        }
    }
}

/// Leaves of a threshold: final values of nodes.
struct FromValues<'a>(&'a Scratch);

impl Inputs for FromValues<'_> {
    fn value(&mut self, leaf: Leaf) -> f64 {
        match leaf {
            Leaf::Node(n) => self.0.values[usize::from(n)],
            Leaf::Const(c) => self.0.constants[usize::from(c)],
            Leaf::Event(_) => f64::NAN,
        }
    }
}

fn result(
    table: &Table,
    layout: &Layout,
    scratch: &Scratch,
    counts: &Counts,
    n: usize,
) -> NodeResult {
    let groups = &layout.groups_of[n];
    let value = match &layout.places[n] {
        Place::Missing(why) => Err(why.clone()),
        _ if scratch.values[n].is_finite() => Ok(scratch.values[n]),
        _ => Err(undefined(table, layout, scratch, n)),
    };
    let shares = groups.iter().filter_map(|&g| counts.groups[g].running_share());
    let error = match &value {
        // Nobody asked for it.
        Ok(_) => Err(SmolStr::default()),
        Err(_) => Err(SmolStr::new_static("no value")),
    };
    NodeResult {
        quantity: Quantity { value, error, running: shares.reduce(f64::min) },
        split: groups.len() > 1,
        over: None,
    }
}

/// Why a formula whose events are all counted has no value.
fn undefined(table: &Table, layout: &Layout, scratch: &Scratch, n: usize) -> Missing {
    let node = &table.nodes[n];
    for leaf in node.formula.leaves() {
        match leaf {
            Leaf::Node(m) => {
                if let Place::Missing(why) = &layout.places[usize::from(m)] {
                    return why.clone();
                }
            }
            Leaf::Const(c) if scratch.constants[usize::from(c)].is_nan() => {
                let name = Const::ALL[usize::from(c)].name();
                return Missing::NotMeasured(format_smolstr!("the constant #{name} is not known"));
            }
            _ => {}
        }
    }
    Missing::Undefined(format_smolstr!("{} divides by a count of zero", node.id))
}

fn thresholds(table: &Table, scratch: &Scratch, evaluation: &mut Evaluation) {
    for (node, result) in table.nodes.iter().zip(&mut evaluation.nodes) {
        let Some(over) = &node.over else { continue };
        if result.quantity.value.is_err() {
            continue;
        }
        let holds = over.eval(&mut FromValues(scratch));
        result.over = (!holds.is_nan()).then_some(holds != 0.0);
    }
}

/// Working memory, reused from one interval to the next.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Scaled count by group × event; NaN where a group does not have the event.
    pub(super) scaled: Vec<f64>,
    /// Value of a node computed from one group, by group × node; valid where the stamp agrees.
    memo: Vec<(u32, f64)>,
    stamp: u32,
    /// Final value by node.
    pub(super) values: Vec<f64>,
    pub(super) constants: [f64; 5],
    /// Formulas are computed without their limits.
    pub(super) unlimited: bool,
}

impl Scratch {
    /// Takes over the counts of one interval.
    pub(super) fn load(&mut self, table: &Table, counts: &Counts) {
        let events = table.events.len();
        self.scaled.clear();
        self.scaled.resize(events * counts.groups.len().max(1), f64::NAN);
        for e in 0..events {
            let id = u16::try_from(e).unwrap_or(u16::MAX);
            if let Some(value) = ambient(table, counts, id) {
                for g in 0..counts.groups.len().max(1) {
                    self.scaled[g * events + e] = value;
                }
            }
        }
        let clocks = common_clocks(table, counts);
        for (g, group) in counts.groups.iter().enumerate() {
            let factor = to_common_clocks(table, group, clocks);
            for (i, e) in group.events().enumerate() {
                if let Ok(total) = group.total(i) {
                    self.scaled[g * events + usize::from(e)] = total * factor;
                }
            }
        }
        self.memo.resize(table.nodes.len() * counts.groups.len().max(1), (0, 0.0));
        self.values.clear();
        self.values.resize(table.nodes.len(), f64::NAN);
        // SMT unknown is evaluated as off; any other unknown constant is undefined.
        self.constants = counts.constants.map(|c| c.unwrap_or(f64::NAN));
        let smt = &mut self.constants[Const::SmtOn.index()];
        *smt = if smt.is_nan() { 0.0 } else { *smt };
        self.unlimited = false;
        self.next_stamp();
    }

    /// Forgets everything computed so far.
    pub(super) fn next_stamp(&mut self) {
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.memo.fill((0, 0.0));
            self.stamp = 1;
        }
    }

    /// Scaled counts of `group`, by event.
    pub(super) fn group_mut(&mut self, table: &Table, group: usize) -> &mut [f64] {
        let events = table.events.len();
        &mut self.scaled[group * events..(group + 1) * events]
    }

    /// Final value of `n`, as last computed.
    pub(super) fn value_of(&self, n: NodeId) -> f64 {
        self.values[usize::from(n)]
    }

    /// Puts `value` back in place of a recomputed one.
    pub(super) fn set_value(&mut self, n: NodeId, value: f64) {
        self.values[usize::from(n)] = value;
    }

    /// Computes the final value of `n`; the nodes in its formula must be computed before.
    pub(super) fn compute(&mut self, table: &Table, layout: &Layout, n: NodeId) {
        let value = match &layout.places[usize::from(n)] {
            Place::Whole(g) => self.in_group(table, *g, n),
            Place::Missing(_) => f64::NAN,
            Place::Split(split) => {
                let formula = &table.nodes[usize::from(n)].formula;
                let unlimited = self.unlimited;
                eval(formula, unlimited, &mut FromSeveral { scratch: self, table, split })
            }
        };
        self.values[usize::from(n)] = value;
    }

    fn in_group(&mut self, table: &Table, group: usize, n: NodeId) -> f64 {
        let at = group * table.nodes.len() + usize::from(n);
        if self.memo[at].0 == self.stamp {
            return self.memo[at].1;
        }
        let formula = &table.nodes[usize::from(n)].formula;
        let unlimited = self.unlimited;
        let value = eval(formula, unlimited, &mut FromOne { scratch: self, table, group });
        self.memo[at] = (self.stamp, value);
        value
    }
}

fn eval(formula: &Program, unlimited: bool, inputs: &mut dyn Inputs) -> f64 {
    if unlimited { formula.eval_unlimited(inputs) } else { formula.eval(inputs) }
}

/// Core clocks of the whole time, from all live groups that count them: multiplexed groups
/// together cover nearly all of it. `None` unless several do.
pub(super) fn common_clocks(table: &Table, counts: &Counts) -> Option<f64> {
    let (mut cycles, mut running, mut enabled, mut groups) = (0u128, 0u128, 0u64, 0);
    for group in &counts.groups {
        let GroupCounts::Live { events, readings, enabled: time } = group else { continue };
        let Some(at) = events.iter().position(|e| *e == table.clocks) else { continue };
        for reading in readings {
            cycles += u128::from(reading.values.get(at).copied().unwrap_or(0));
            running += u128::from(reading.running);
        }
        enabled = enabled.max(*time);
        groups += 1;
    }
    let known = groups > 1 && running > 0 && cycles > 0;
    known.then(|| cycles as f64 * (enabled as f64 / running as f64))
}

/// The factor that scales a group to the common clock count. Scaling by time assumes that the group's
/// share of the time (or, with one run per group, its run) was as busy as the others; scaled by
/// clocks, all groups refer to the same cycles, and the terms of a node that is split over several
/// groups are consistent. For groups enabled all the time in one run the factor is 1.
fn to_common_clocks(table: &Table, group: &GroupCounts, clocks: Option<f64>) -> f64 {
    let (GroupCounts::Live { events, .. }, Some(common)) = (group, clocks) else { return 1.0 };
    let own = events.iter().position(|e| *e == table.clocks).and_then(|i| group.total(i).ok());
    match own {
        Some(own) if own > 0.0 => common / own,
        _ => 1.0,
    }
}

/// Leaves of a node that is computed from one group, nodes in its formula included.
struct FromOne<'a> {
    scratch: &'a mut Scratch,
    table: &'a Table,
    group: usize,
}

impl Inputs for FromOne<'_> {
    fn value(&mut self, leaf: Leaf) -> f64 {
        match leaf {
            Leaf::Event(e) => {
                self.scratch.scaled[self.group * self.table.events.len() + usize::from(e)]
            }
            Leaf::Node(m) => self.scratch.in_group(self.table, self.group, m),
            Leaf::Const(c) => self.scratch.constants[usize::from(c)],
        }
    }
}

/// Leaves of a split node: own events from their groups; other nodes from one of these groups,
/// or by their final values.
struct FromSeveral<'a> {
    scratch: &'a mut Scratch,
    table: &'a Table,
    split: &'a Split,
}

impl Inputs for FromSeveral<'_> {
    fn value(&mut self, leaf: Leaf) -> f64 {
        match leaf {
            Leaf::Event(e) => {
                let events = &self.split.events;
                let group = events.iter().find(|(own, _)| *own == e).map_or(0, |(_, g)| *g);
                self.scratch.scaled[group * self.table.events.len() + usize::from(e)]
            }
            Leaf::Node(m) => match self.split.nodes.iter().find(|(beside, _)| *beside == m) {
                Some((_, group)) => self.scratch.in_group(self.table, *group, m),
                None => self.scratch.values[usize::from(m)],
            },
            Leaf::Const(c) => self.scratch.constants[usize::from(c)],
        }
    }
}
