//! Which rows of A and B are the same code.

use super::clones::plain;
use super::code::Matched;
use super::timed::{Kind, Timed};
use crate::documents::code_shape::mnemonics;
use std::collections::BTreeMap;

/// Instructions from which a block is found in another function, too.
const LONG: usize = 4;

/// The rows of A with those of B, as far as they were found.
pub(super) struct Pairs {
    /// Row of B for each row of A.
    of_a: Vec<Option<(usize, Matched)>>,
    /// Whether a row of B has one of A.
    taken: Vec<bool>,
}

impl Pairs {
    fn new(a: usize, b: usize) -> Self {
        Self { of_a: vec![None; a], taken: vec![false; b] }
    }

    /// Pairs what is left and has the same key, in order of address.
    fn by<K: Ord>(
        &mut self,
        a: &[Timed],
        b: &[Timed],
        how: Matched,
        key: impl Fn(bool, usize, &Timed) -> Option<K>,
    ) {
        let mut groups: BTreeMap<K, [Vec<usize>; 2]> = BTreeMap::new();
        for (side, rows) in [a, b].into_iter().enumerate() {
            let is_b = side == 1;
            let mut left: Vec<usize> = (0..rows.len()).filter(|i| !self.has(is_b, *i)).collect();
            left.sort_by_key(|i| rows[*i].start);
            for i in left {
                if let Some(key) = key(is_b, i, &rows[i]) {
                    groups.entry(key).or_default()[side].push(i);
                }
            }
        }
        for [of_a, of_b] in groups.into_values() {
            for (a, b) in of_a.into_iter().zip(of_b) {
                self.of_a[a] = Some((b, how));
                self.taken[b] = true;
            }
        }
    }

    fn has(&self, is_b: bool, row: usize) -> bool {
        if is_b { self.taken[row] } else { self.of_a[row].is_some() }
    }

    /// All rows: of A, of B, how they were found.
    pub fn all(&self) -> Vec<(Option<usize>, Option<usize>, Matched)> {
        let of_a = self.of_a.iter().enumerate().map(|(a, found)| match found {
            Some((b, how)) => (Some(a), Some(*b), *how),
            None => (Some(a), None, Matched::None),
        });
        let rest = self.taken.iter().enumerate().filter(|(_, taken)| !**taken);
        of_a.chain(rest.map(|(b, _)| (None, Some(b), Matched::None))).collect()
    }
}

/// Functions by name: in the same module, in any, without parameters; by the name in the source.
pub(super) fn functions(a: &[Timed], b: &[Timed]) -> Pairs {
    let mut pairs = Pairs::new(a.len(), b.len());
    pairs.by(a, b, Matched::Name, |_, _, row| Some((row.name.clone(), row.module.clone())));
    pairs.by(a, b, Matched::Name, |_, _, row| Some(row.name.clone()));
    pairs.by(a, b, Matched::Name, |_, _, row| Some(row.short.clone()));
    pairs.by(a, b, Matched::Copies, |_, _, row| Some((plain(&row.name), row.module.clone())));
    pairs.by(a, b, Matched::Copies, |_, _, row| Some(plain(&row.name)));
    pairs
}

/// Loops and blocks, whose functions have these numbers on each side: within a function by their instructions, by
/// their mnemonics, and by their source line; long ones in another function, too.
pub(super) fn pieces(
    a: &[Timed],
    functions_a: &[Option<usize>],
    b: &[Timed],
    functions_b: &[Option<usize>],
) -> Pairs {
    let mut pairs = Pairs::new(a.len(), b.len());
    let function = |is_b: bool, i: usize| if is_b { functions_b[i] } else { functions_a[i] };
    let own = |is_b, i, row: &Timed| Some((row.kind, function(is_b, i)?));
    type Own = (Kind, usize);
    pairs.by(a, b, Matched::Shape, |is_b, i, row| -> Option<(Own, String)> {
        Some((own(is_b, i, row)?, row.shape.clone()?))
    });
    pairs.by(a, b, Matched::Mnemonics, |is_b, i, row| {
        Some((own(is_b, i, row)?, mnemonics(row.shape.as_ref()?)))
    });
    pairs.by(a, b, Matched::Line, |is_b, i, row| {
        let (file, line) = row.line.as_ref()?;
        let file = file.rsplit('/').next().unwrap_or(file).to_owned();
        Some((own(is_b, i, row)?, file, *line))
    });
    pairs.by(a, b, Matched::Shape, |_, _, row| {
        let shape = row.shape.as_ref().filter(|shape| shape.split("; ").count() >= LONG)?;
        Some((row.kind, shape.clone()))
    });
    pairs
}
