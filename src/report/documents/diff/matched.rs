//! Matches the rows of A and B that are the same code; copies of a function that compilers made count as one.

use super::row::Matched;
use super::timed::{Kind, Timed, mnemonics};
use std::collections::{BTreeMap, BTreeSet};

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

/// Suffixes with a number after them that GCC and LLVM give to copies and parts of a function: `chase.constprop.0`,
/// `chase.cold` and `chase.part.0` are `chase` of the source.
const NUMBERED: [&str; 8] =
    ["constprop", "isra", "part", "cold", "lto_priv", "llvm", "__uniq", "specialized"];
/// Suffixes without a number.
const PLAIN: [&str; 2] = ["cold", "localalias"];
/// Digits of the hash at the end of a Rust name (legacy mangling), and the most of a crate's (v0).
const HASH: usize = 16;

/// The name in the source, without what compilers add.
pub(super) fn plain(name: &str) -> String {
    let mut name = name.trim();
    loop {
        let shorter =
            without_clone(name).or_else(|| without_suffix(name)).or_else(|| without_hash(name));
        match shorter {
            Some(shorter) if !shorter.is_empty() => name = shorter,
            _ => return without_crates(name),
        }
    }
}

/// Without ` [clone .constprop.0]`, as demanglers write it.
fn without_clone(name: &str) -> Option<&str> {
    let (before, after) = name.rsplit_once(" [clone ")?;
    after.ends_with(']').then_some(before)
}

/// Without `.constprop.0`, `.cold` or `.llvm.123`.
fn without_suffix(name: &str) -> Option<&str> {
    let (before, last) = name.rsplit_once('.')?;
    if PLAIN.contains(&last) {
        return Some(before);
    }
    let is_number = !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit());
    let (name, suffix) = before.rsplit_once('.').filter(|_| is_number)?;
    NUMBERED.contains(&suffix).then_some(name)
}

/// Without `::h0123456789abcdef`.
fn without_hash(name: &str) -> Option<&str> {
    let (before, hash) = name.rsplit_once("::h")?;
    (hash.len() == HASH && hash.bytes().all(|b| b.is_ascii_hexdigit())).then_some(before)
}

/// Without the hashes of crates: `core[3f1e9c0a]::fmt`.
fn without_crates(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(open) = rest.find('[') {
        let (before, after) = rest.split_at(open);
        let hash = after[1..].find(']').map(|close| &after[1..=close]);
        let is_hash = hash.is_some_and(|hash| {
            let is_hex = hash.bytes().all(|b| b.is_ascii_hexdigit());
            (HASH / 2..=HASH).contains(&hash.len())
                && is_hex
                && after[hash.len() + 2..].starts_with("::")
        });
        out.push_str(before);
        match hash.filter(|_| is_hash) {
            Some(hash) => rest = &after[hash.len() + 2..],
            None => {
                out.push('[');
                rest = &after[1..];
            }
        }
    }
    out + rest
}

/// Joins the copies of each function of which the two sides have different ones: its time is that of all.
pub(super) fn joined(sides: [Vec<Timed>; 2]) -> [Vec<Timed>; 2] {
    let names = sides.each_ref().map(|rows| {
        let mut names: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for row in rows {
            names.entry(family(row)).or_default().insert(row.name.clone());
        }
        names
    });
    let differs = |key: &(String, String)| match (names[0].get(key), names[1].get(key)) {
        (Some(a), Some(b)) => a != b,
        // Modules of another name: the functions are paired by name later.
        _ => false,
    };
    sides.map(|rows| {
        let mut out: Vec<Timed> = Vec::new();
        let mut at: BTreeMap<(String, String), usize> = BTreeMap::new();
        for row in rows {
            let key = family(&row);
            if !differs(&key) {
                out.push(row);
                continue;
            }
            match at.get(&key) {
                Some(first) => out[*first].take(&row),
                None => {
                    at.insert(key.clone(), out.len());
                    out.push(Timed { short: plain(&row.short), name: key.0, ..row });
                }
            }
        }
        out
    })
}

fn family(row: &Timed) -> (String, String) {
    (plain(&row.name), row.module.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Suffixes of GCC 12 (gcc/cgraphclones.cc, `clone_function_name`), LLVM 17 and rustc 1.88.
    #[test]
    fn copies_have_the_name_in_the_source() {
        for copy in [
            "chase",
            "chase.constprop.0",
            "chase.cold",
            "chase.part.0",
            "chase.isra.0",
            "chase.lto_priv.0",
            "chase.llvm.12345678901234",
            "chase.constprop.0.isra.0",
            "chase.part.0.cold",
            "chase.cold.1",
            "chase.__uniq.123",
            "chase [clone .constprop.0]",
            "chase [clone .isra.0] [clone .cold]",
        ] {
            assert_eq!(plain(copy), "chase", "{copy}");
        }
        let rust = "core::fmt::Formatter::pad";
        assert_eq!(plain("core::fmt::Formatter::pad::h0123456789abcdef"), rust);
        assert_eq!(plain("core::fmt::Formatter::pad::h0123456789abcdef.llvm.77"), rust);
        assert_eq!(plain("core[3f1e9c0a12345678]::fmt::Formatter::pad"), rust);
        for other in [
            "chase.2",
            "chase2",
            "a.out",
            "main.main",
            "main.part",
            "f(int[8])",
            "<[u8; 4]>::len",
            "x::h12",
            ".cold",
        ] {
            assert_eq!(plain(other), other);
        }
    }
}
