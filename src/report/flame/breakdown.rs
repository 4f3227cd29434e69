//! Nodes of the time of each function.

use crate::documents::flame::FlameGraph;
use std::collections::HashMap;

/// Shares of nodes in the time of each function, counted, sampled or estimated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Breakdown {
    /// Where the shares come from, for the legend; `None`: there are none.
    pub source: Option<String>,
    /// By name and module: nodes and their shares of its time.
    functions: HashMap<(String, String), Vec<(String, f64)>>,
}

impl Breakdown {
    /// None known yet, from this source.
    pub fn of(source: &str) -> Self {
        Self { source: Some(source.to_owned()), functions: HashMap::new() }
    }

    /// Sets the shares of a function. What is negative or missing to 1 is not known; larger sums are scaled.
    pub fn insert(&mut self, name: &str, module: &str, shares: &[(String, f64)]) {
        let mut shares: Vec<(String, f64)> =
            shares.iter().filter(|(_, share)| *share > 0.0).cloned().collect();
        let sum: f64 = shares.iter().map(|(_, share)| share).sum();
        if sum > 1.0 {
            shares.iter_mut().for_each(|(_, share)| *share /= sum);
        } else if sum < 1.0 {
            shares.push((FlameGraph::UNKNOWN.to_owned(), 1.0 - sum));
        }
        self.functions.insert((name.to_owned(), module.to_owned()), shares);
    }

    /// Whether no function's shares are known.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The shares of a function; they add up to 1.
    pub fn shares(&self, name: &str, module: &str) -> Vec<(String, f64)> {
        let known = self.functions.get(&(name.to_owned(), module.to_owned()));
        known.cloned().unwrap_or_else(|| vec![(FlameGraph::UNKNOWN.to_owned(), 1.0)])
    }
}
