//! Counts of branches and straight code of a module, as optimisers read them: BOLT, and llvm-profgen and AutoFDO for
//! compilers.

use profile::files::Program;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Counts of a module, by p_vaddr.
#[derive(Default)]
pub(super) struct Counts {
    /// Straight code: its first and last instruction.
    pub ranges: BTreeMap<(u64, u64), u64>,
    /// Sampled instructions.
    pub instructions: BTreeMap<u64, u64>,
    /// Taken branches: count and mispredicted.
    pub edges: BTreeMap<(u64, u64), (u64, u64)>,
    /// Entries of functions from no known branch.
    pub entries: BTreeMap<u64, u64>,
    /// Targets of branches that are no returns, and of branches of other modules.
    pub jumped_to: BTreeSet<u64>,
    /// Targets of returns and of branches from elsewhere.
    pub returned_to: BTreeSet<u64>,
}

/// As `llvm-profgen --skip-symbolization --use-offset=0` writes them, input of `llvm-profgen
/// --unsymbolized-profile`: ranges, then branches, each after their number. A branch from 1 is one from outside
/// (`ExternalAddr` in llvm/tools/llvm-profgen/PerfReader.h).
pub(super) fn unsymbolized(all: &Counts) -> String {
    let mut out = format!("{}\n", all.ranges.len());
    for ((first, last), count) in &all.ranges {
        let _ = writeln!(out, "{first:x}-{last:x}:{count}");
    }
    let _ = writeln!(out, "{}", all.edges.len() + all.entries.len());
    for (to, count) in &all.entries {
        let _ = writeln!(out, "1->{to:x}:{count}");
    }
    for ((from, to), (count, _)) in &all.edges {
        let _ = writeln!(out, "{from:x}->{to:x}:{count}");
    }
    out
}

/// AutoFDO's text (`TextSampleReaderWriter` of its sample_reader.cc): ranges, samples and branches, each after their
/// number, by offset in the file. It has no branches from outside.
pub(super) fn autofdo(all: &Counts, program: &Program) -> String {
    let both = |(a, b): (u64, u64)| program.offset_of(a).zip(program.offset_of(b));
    let ranges: BTreeMap<_, u64> =
        all.ranges.iter().filter_map(|(key, n)| Some((both(*key)?, *n))).collect();
    let mut out = format!("{}\n", ranges.len());
    for ((first, last), count) in &ranges {
        let _ = writeln!(out, "{first:x}-{last:x}:{count}");
    }
    let instructions: BTreeMap<_, u64> =
        all.instructions.iter().filter_map(|(at, n)| Some((program.offset_of(*at)?, *n))).collect();
    let _ = writeln!(out, "{}", instructions.len());
    for (at, count) in &instructions {
        let _ = writeln!(out, "{at:x}:{count}");
    }
    let edges: BTreeMap<_, u64> =
        all.edges.iter().filter_map(|(key, (n, _))| Some((both(*key)?, *n))).collect();
    let _ = writeln!(out, "{}", edges.len());
    for ((from, to), count) in &edges {
        let _ = writeln!(out, "{from:x}->{to:x}:{count}");
    }
    out
}

/// BOLT's pre-aggregated profile (bolt/include/bolt/Profile/DataAggregator.h, `parsePreAggregated`): `B FROM TO COUNT
/// MISPREDICTED` for branches, from 0 if from outside; `F FIRST LAST COUNT` for straight code, `f` where only returns and
/// other modules lead to its beginning.
pub(super) fn bolt(all: &Counts) -> String {
    let mut out = String::new();
    for (to, count) in &all.entries {
        let _ = writeln!(out, "B 0 {to:x} {count} 0");
    }
    for ((from, to), (count, wrong)) in &all.edges {
        let _ = writeln!(out, "B {from:x} {to:x} {count} {wrong}");
    }
    for ((first, last), count) in &all.ranges {
        let is_external = all.returned_to.contains(first) && !all.jumped_to.contains(first);
        let letter = if is_external { 'f' } else { 'F' };
        let _ = writeln!(out, "{letter} {first:x} {last:x} {count}");
    }
    out
}
