//! The values of nodes and software counts in the last intervals.

use report::documents::report::Place;
use report::documents::{NodeRow, Report};
use std::collections::{HashMap, VecDeque};

/// Intervals whose values are stored.
const INTERVALS: usize = 240;

/// Values by part of the measurement and name, oldest first; `None` where there was none.
#[derive(Debug, Default)]
pub struct History(HashMap<String, VecDeque<Option<f64>>>);

impl History {
    /// Adds the values of an interval.
    pub fn add(&mut self, report: &Report) {
        let nodes = report.nodes.iter().map(|n| (node_key(&n.place, &n.id), n.value));
        let seconds = report.interval.map(|(a, b)| b - a).filter(|s| *s > 0.0);
        let rate = |value: &Option<f64>| Some(value.as_ref()? / seconds?);
        let software = report.software.iter().map(|(name, v)| (software_key(name), rate(v)));
        for (key, value) in nodes.chain(software) {
            let values = self.0.entry(key).or_default();
            if values.len() == INTERVALS {
                values.pop_front();
            }
            values.push_back(value);
        }
    }

    /// The values of a node.
    pub fn of_node(&self, node: &NodeRow) -> Option<&VecDeque<Option<f64>>> {
        self.0.get(&node_key(&node.place, &node.id))
    }

    /// The rates of a software count.
    pub fn of_software(&self, name: &str) -> Option<&VecDeque<Option<f64>>> {
        self.0.get(&software_key(name))
    }
}

/// Without the interval, which is what the history runs over.
fn node_key(place: &Place, id: &str) -> String {
    format!("{} {} {id}", place.core.as_deref().unwrap_or(""), place.scope.as_deref().unwrap_or(""))
}

fn software_key(name: &str) -> String {
    format!("software {name}")
}
