//! The tables of events and nodes, and `tdtool tables`.

mod amd;
mod command;
mod identify;
mod intel;
#[cfg(target_arch = "x86_64")]
mod measured;
mod new_microarchitecture;
mod paper;
mod perf_stat;
mod processors;

use std::sync::Arc;
use tma::counts::{Counts, GroupCounts};
use tma::tables::Table;
use tma::tree::{Evaluation, Evaluator};

/// A table of the library.
pub fn table(name: &str) -> Arc<Table> {
    events::library().load(name).unwrap()
}

/// Counts in the groups they were recorded in.
pub fn counts(table: &Table, groups: &[Vec<(String, f64)>]) -> Counts {
    let group = |events: &Vec<(String, f64)>| GroupCounts::Imported {
        events: events
            .iter()
            .map(|(name, value)| {
                let id = table.event(name).unwrap_or_else(|| panic!("{name} in {}", table.name));
                (id, Ok(*value))
            })
            .collect(),
        running: None,
        intervals: Vec::new(),
    };
    Counts { groups: groups.iter().map(group).collect(), ..Counts::default() }
}

/// The values of these counts, all of one group.
pub fn evaluate(table: &Table, events: &[(&str, f64)]) -> Evaluation {
    let group = events.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Evaluator::new(table).values(&counts(table, &[group]))
}

/// The value of a node.
pub fn value(table: &Table, evaluation: &Evaluation, id: &str) -> f64 {
    let n = table.node(id).unwrap_or_else(|| panic!("{id} in {}", table.name));
    evaluation.nodes[usize::from(n)].quantity.value.clone().unwrap_or_else(|e| panic!("{id}: {e}"))
}

/// The nodes have the values that were worked out by hand.
pub fn assert_values(name: &str, events: &[(&str, f64)], expect: &[(&str, f64)]) {
    let table = table(name);
    let evaluation = evaluate(&table, events);
    for (id, expected) in expect {
        let got = value(&table, &evaluation, id);
        assert!((got - expected).abs() < 1e-9, "{name} {id}: {got}, by hand {expected}");
    }
}
