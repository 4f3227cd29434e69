//! Level 1 of the binaries with most samples: counted where samples read its events, else missing with the reason.

use super::functions::binary;
use super::time::Time;
use crate::sampled::per_function::{LevelOne, of_times};
use fleet::window::{Node, Owner, Source};
use profile::hot::{ByThread, Tally};
use report::documents::Report;
use report::documents::report_parts::FunctionNode;
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::sync::Arc;
use tma::tables::{Library, Table};

/// Most binaries.
const MOST: usize = 64;

/// Level 1 of the binaries with most samples, beside the report of what was counted with them.
pub fn binaries(by: &ByThread, report: &Report, library: &Library, time: &Time) -> Vec<Node> {
    Trees::new(by, report, library).rows(by, time)
}

/// Where trees of binaries come from.
struct Trees {
    /// By module; `None`: samples did not read what level 1 needs.
    levels: Option<Vec<LevelOne>>,
    /// Nodes of level 1 and why none of them has a value.
    missing: Vec<(SmolStr, String)>,
}

impl Trees {
    /// For the samples of a window, beside the report of its counts.
    fn new(by: &ByThread, report: &Report, library: &Library) -> Self {
        let names = report.uarch.split('+').filter(|name| !name.is_empty());
        let tables: Vec<Arc<Table>> = names.filter_map(|name| library.load(name).ok()).collect();
        let levels = of_times(&tables, &by.reads, by.reads.functions.iter());
        let unread = "samples did not read the events of level 1";
        let why = |missing: &Option<String>| missing.clone().unwrap_or_else(|| unread.to_owned());
        let of = report.nodes.iter().filter(|row| row.level == 1);
        let mut missing: Vec<_> = of.map(|row| (row.id.clone(), why(&row.missing))).collect();
        missing.sort();
        missing.dedup_by(|a, b| a.0 == b.0);
        Self { levels: levels.map(|(_, levels)| levels), missing }
    }

    /// The rows of the binaries.
    fn rows(&self, by: &ByThread, time: &Time) -> Vec<Node> {
        let mut sums: BTreeMap<usize, Tally> = BTreeMap::new();
        let mut all = Tally::default();
        for (of, tally) in &by.sums {
            all.add(*tally);
            if let Some(place) = of.place {
                sums.entry(place.module).or_default().add(*tally);
            }
        }
        let mut sums: Vec<(usize, Tally)> = sums.into_iter().collect();
        sums.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight));
        let with_most = sums.into_iter().take(MOST);
        let rows = with_most.flat_map(|(module, tally)| {
            let binary = by.modules.get(module).map(binary);
            let owner = Owner { binary, ..Owner::default() };
            self.of(module, &owner, time.seconds(tally, all))
        });
        rows.collect()
    }

    fn of(&self, module: usize, owner: &Owner, cpu_seconds: Option<f64>) -> Vec<Node> {
        let row = |node: &SmolStr, share: Option<&FunctionNode>, missing: Option<String>| Node {
            owner: owner.clone(),
            node: node.clone(),
            parent: None,
            level: 1,
            share: share.and_then(|of| of.value),
            interval: share.and_then(interval),
            slots: None,
            cpu_seconds,
            source: Source::Counted,
            missing,
        };
        let levels = self.levels.as_ref().and_then(|levels| levels.get(module));
        let Some(level) = levels else {
            let missing = self.missing.iter();
            return missing.map(|(node, why)| row(node, None, Some(why.clone()))).collect();
        };
        let counted = level.nodes.iter().map(|of| {
            let why = || of.missing.clone().or_else(|| level.reason.clone());
            let is_known = of.value.is_some() && level.reason.is_none();
            let missing = || why().unwrap_or_else(|| "it was not counted".to_owned());
            let share = is_known.then_some(of);
            row(&of.id.as_str().into(), share, (!is_known).then(missing))
        });
        counted.collect()
    }
}

/// The share with its sampling error, and the difference that attributing to the later sample makes.
fn interval(of: &FunctionNode) -> Option<(f64, f64)> {
    let (value, error) = (of.value?, of.error? + of.bias.unwrap_or(0.0));
    Some(((value - error).max(0.0), (value + error).min(1.0)))
}
