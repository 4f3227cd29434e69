//! Counts → the value of every node, its error and running share.

use super::layout::{Layout, Place};
use super::scratch::Scratch;
use super::{Evaluation, NodeResult, jackknife};
use crate::counts::Counts;
use crate::formula::{Inputs, Leaf};
use crate::quantity::{Missing, Quantity};
use crate::tables::{Const, Table};
use smol_str::{SmolStr, format_smolstr};
use std::sync::Arc;

/// Evaluates a table over and over: the arrangement of groups is worked out once.
#[derive(Debug)]
pub struct Evaluator<'t> {
    table: &'t Table,
    layout: Option<Arc<Layout>>,
    scratch: Scratch,
}

impl<'t> Evaluator<'t> {
    /// An evaluator for `table`. Where the counts say nothing of SMT, it is taken as off.
    pub fn new(table: &'t Table) -> Self {
        Self { table, layout: None, scratch: Scratch::default() }
    }

    /// Values, running shares and thresholds, without errors: what an interval needs.
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

    /// Values as [`Evaluator::values`], each with its error.
    pub fn evaluate(&mut self, counts: &Counts) -> Evaluation {
        let mut evaluation = self.values(counts);
        jackknife::errors(self.table, &mut self.scratch, counts, &mut evaluation);
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
