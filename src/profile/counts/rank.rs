//! Ranks tables by how many of a recording's events they have.

use super::names::{Match, Names, SoftwareKind};
use super::recording::Recording;
use std::collections::HashSet;
use tma::tables::{Const, Library, plain_name};

/// How well a table fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableMatch {
    /// The table.
    pub name: String,
    /// Number of the recording's events that it has.
    pub matched: usize,
    /// Number of the recording's events of this kind of core.
    pub total: usize,
}

/// Tables that have events of the recording, best first: for hints, and for imports without a
/// microarchitecture.
///
/// If some tables have all names as written, these are the best. Otherwise names are resolved, also
/// by encoding, in the tables with most of the recording's plain names.
pub fn best_tables(recording: &Recording, library: &Library) -> Vec<TableMatch> {
    let mut seen = HashSet::new();
    let rows = recording.blocks.iter().flat_map(|b| &b.rows);
    let used: Vec<&str> = rows
        .filter(|r| seen.insert(r.name))
        .map(|r| recording.name(r.name))
        .filter(|name| !is_constant(name) && SoftwareKind::from_name(name).is_none())
        .collect();
    let written = library.knowing(&used);
    let all = written.iter().any(|(known, _)| *known == used.len());
    let mut found: Vec<TableMatch> = if all {
        let total = used.len();
        let fit = |(matched, name): (usize, &str)| TableMatch { name: name.into(), matched, total };
        written.into_iter().filter(|(known, _)| *known > 0).map(fit).collect()
    } else {
        candidates(&used, library).into_iter().filter_map(|n| resolved(&used, library, n)).collect()
    };
    found.sort_by(|a, b| b.matched.cmp(&a.matched).then_with(|| a.total.cmp(&b.total)));
    found
}

fn is_constant(name: &str) -> bool {
    name.strip_prefix('#').and_then(Const::from_name).is_some()
}

/// How well table `name` fits; `None` if it has none of the events.
fn resolved(used: &[&str], library: &Library, name: &str) -> Option<TableMatch> {
    let table = library.load(name).ok()?;
    let names = Names::new(&table);
    let mut fit = TableMatch { name: name.to_owned(), matched: 0, total: 0 };
    for used in used {
        match names.resolve(used) {
            Match::Event { .. } => fit.matched += 1,
            Match::Unknown => {}
            Match::OtherCore | Match::Constant(_) | Match::Software(_) => continue,
        }
        fit.total += 1;
    }
    (fit.matched > 0).then_some(fit)
}

/// Tables worth decoding: those with as many of the recording's plain event names as the best one,
/// or all of them if few names are plain (raw codes, `cycles`).
fn candidates<'l>(used: &[&str], library: &'l Library) -> Vec<&'l str> {
    let plain: HashSet<String> = used.iter().filter_map(|n| plain_name(n)).collect();
    let plain: Vec<&str> = plain.iter().map(String::as_str).collect();
    let scores = library.knowing_plain(&plain);
    let best = scores.iter().map(|(s, _)| *s).max().unwrap_or(0);
    let decided = best * 2 > used.len();
    scores.into_iter().filter(|(s, _)| !decided || *s == best).map(|(_, n)| n).collect()
}
