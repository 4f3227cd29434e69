//! Which tables a recording fits, by how many of its event names each knows.

use super::Recording;
use super::names::{Match, Names};
use crate::tables::Library;
use std::collections::HashSet;

/// How well a table fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableMatch {
    /// The table.
    pub name: String,
    /// How many of the recording's events it has.
    pub matched: usize,
    /// How many events of this kind of core the recording has.
    pub total: usize,
}

/// All tables that know an event of the recording, best first. Reads every table: for errors,
/// and for imports that name no microarchitecture.
pub fn best_tables(recording: &Recording, library: &Library) -> Vec<TableMatch> {
    let mut seen = HashSet::new();
    let rows = recording.blocks.iter().flat_map(|b| &b.rows);
    let used: Vec<&str> =
        rows.filter(|r| seen.insert(r.name)).map(|r| recording.name(r.name)).collect();
    let mut found: Vec<TableMatch> = library
        .names()
        .filter_map(|name| {
            let table = library.load(name).ok()?;
            let names = Names::new(&table);
            let mut fit = TableMatch { name: name.to_owned(), matched: 0, total: 0 };
            for used in &used {
                match names.resolve(used) {
                    Match::Event { .. } => fit.matched += 1,
                    Match::Unknown => {}
                    Match::OtherCore | Match::Constant(_) | Match::Software(_) => continue,
                }
                fit.total += 1;
            }
            (fit.matched > 0).then_some(fit)
        })
        .collect();
    found.sort_by(|a, b| b.matched.cmp(&a.matched).then_with(|| a.total.cmp(&b.total)));
    found
}
