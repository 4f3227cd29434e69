//! Which tables a recording fits, by how many of its event names each knows.

use super::Recording;
use super::names::{Match, Names};
use std::collections::HashSet;
use tma::tables::Library;

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

/// Tables that know events of the recording, best first: for errors, and for imports that name no
/// microarchitecture. Tables whose event names differ too much from the recording's to win are
/// not parsed.
pub fn best_tables(recording: &Recording, library: &Library) -> Vec<TableMatch> {
    let mut seen = HashSet::new();
    let rows = recording.blocks.iter().flat_map(|b| &b.rows);
    let used: Vec<&str> =
        rows.filter(|r| seen.insert(r.name)).map(|r| recording.name(r.name)).collect();
    let mut found: Vec<TableMatch> = candidates(&used, library)
        .into_iter()
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

/// Tables worth parsing: those whose event names, read off their text, agree with as many of the
/// recording's as the best one's. All of them where names hardly decide (raw codes, `cycles`).
fn candidates<'l>(used: &[&str], library: &'l Library) -> Vec<&'l str> {
    let used: HashSet<String> = used.iter().filter_map(|n| plain_name(n)).collect();
    let score = |name: &str| {
        let Ok((text, _)) = library.text(name) else { return 0 };
        let keys = text.lines().filter_map(|l| l.strip_prefix('"')?.split('"').next());
        let known: HashSet<String> =
            keys.filter_map(plain_name).filter(|k| used.contains(k)).collect();
        known.len()
    };
    let scores: Vec<(usize, &str)> = library.names().map(|n| (score(n), n)).collect();
    let best = scores.iter().map(|(s, _)| *s).max().unwrap_or(0);
    let decided = best * 2 > used.len();
    scores.into_iter().filter(|(s, _)| !decided || *s == best).map(|(_, n)| n).collect()
}

/// An event's name without PMU, filters and modifiers, in lower case; `None` for what is no name.
fn plain_name(name: &str) -> Option<String> {
    let inner = name.split_once('/').map_or(name, |(_, rest)| rest);
    let end = inner.find(['/', ',', ':', '=']).unwrap_or(inner.len());
    let plain = inner[..end].trim().to_lowercase();
    (!plain.is_empty() && !plain.starts_with('#')).then_some(plain)
}
