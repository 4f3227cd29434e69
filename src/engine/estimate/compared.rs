//! What contention for cache lines costs: what code takes longer than in a run pinned to one CPU, where recorded
//! addresses show any.

use super::ask::DEVIATIONS;
use super::pieces::{Function, Kind, PieceOf};
use estimate::{Contending, Interval};
use report::documents::count::{self, ContendedLine};
use report::documents::evidence::Pinned;
use std::collections::BTreeMap;
use std::ops::Range;

/// Relative error of the processor time of code in two runs that do the same, beside that of samples.
const RUNS_ERROR: f64 = 0.05;
/// Code on both threads of a core takes at most so many times as long as alone: that is no contention for lines.
const SIBLINGS: f64 = 2.0;
/// Without siblings: one core alone may clock higher than all together, at most by so much on current servers (a Xeon
/// Platinum 8280 4.0 and 3.3 GHz, Intel ARK).
const ALONE_FASTER: f64 = 1.25;

/// What threads contend for by this kind.
pub(super) fn contending(of: count::Contention) -> Contending {
    match of {
        count::Contention::FalseSharing => Contending::OtherBytes,
        count::Contention::ContestedAccesses => Contending::SameBytes,
        count::Contention::LockLatency => Contending::Locked,
    }
}

/// The kind of most recorded accesses of code to lines that threads contend for, and its share of these; none if it has none.
pub(super) fn kind(
    lines: &[ContendedLine],
    module: &str,
    code: &[Range<u64>],
) -> Option<(count::Contention, f64)> {
    let mut all: BTreeMap<count::Contention, u64> = BTreeMap::new();
    for line in lines {
        let is_own = |at: u64| code.iter().any(|range| range.contains(&at));
        let own = line.accesses.iter().filter(|of| of.module == module && is_own(of.address.0));
        let own: u64 = own.map(|of| of.recorded).sum();
        *all.entry(line.contention).or_default() += own;
    }
    let sum: u64 = all.values().sum();
    let (kind, own) = all.into_iter().max_by_key(|(_, own)| *own).filter(|(_, own)| *own > 0)?;
    Some((kind, own as f64 / sum as f64))
}

/// The code whose samples may be of contention in a piece: a loop, or as a sample is often taken in the block after the
/// one that took the time, all of its function outside of loops.
pub(super) fn around(at: PieceOf) -> Vec<Range<u64>> {
    let PieceOf { function, piece } = at;
    let of = |blocks: &[usize]| blocks.iter().map(|block| function.range(*block)).collect();
    match piece.kind {
        Kind::Loop(_) => of(&piece.blocks),
        _ => {
            let others = function.pieces.iter().filter(|one| !matches!(one.kind, Kind::Loop(_)));
            of(&others.flat_map(|one| one.blocks.iter().copied()).collect::<Vec<_>>())
        }
    }
}

/// Samples of a piece in the pinned run.
pub(super) fn samples(of: &Pinned, function: &Function, blocks: &[usize]) -> u64 {
    let own = of.places.get(&function.module).into_iter().flatten();
    let is_own = |at: u64| blocks.iter().any(|block| function.range(*block).contains(&at));
    own.filter(|(at, _)| is_own(*at)).map(|(_, samples)| samples).sum()
}

/// Seconds in the kernel that a pinned run lacks, of `task` seconds with that share in the kernel, if they matter.
pub(super) fn waited(of: &Pinned, task: f64, kernel: f64) -> Option<f64> {
    let less = kernel * task - of.kernel * of.task;
    (of.failed.is_none() && less > RUNS_ERROR * task).then_some(less)
}

/// What contention costs in code that takes `cycles`, of which `samples` were taken in a pinned run of `pinned` cycles;
/// nothing where it takes no longer. `error` is by how much more than that of its time the code's work may differ between runs.
pub(super) fn cost(
    cycles: Interval,
    of: &Pinned,
    (pinned, error): (f64, f64),
    samples: u64,
) -> Option<Interval> {
    let runs = RUNS_ERROR.max(error);
    let each = pinned / of.samples.max(1) as f64;
    let number = samples as f64;
    // Of no sample up to two are likely.
    let error = DEVIATIONS * number.max(1.0).sqrt();
    let alone = Interval::new(number, number - error, number + error).times(each);
    let alone = alone.widened(runs).clamped(0.0, f64::INFINITY);
    let found = cycles.minus(alone);
    let slower = if of.smt { SIBLINGS } else { ALONE_FASTER };
    let least = found.low.min(cycles.low - slower * alone.value);
    (found.value > 0.0).then(|| Interval::new(found.value, least.max(0.0), found.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::documents::count::ContendedAccess;

    fn line(contention: count::Contention, address: u64, recorded: u64) -> ContendedLine {
        let access = ContendedAccess {
            module: "a".to_owned(),
            address: address.into(),
            recorded,
            ..ContendedAccess::default()
        };
        ContendedLine { contention, accesses: vec![access], ..ContendedLine::default() }
    }

    #[test]
    fn code_without_contended_accesses_does_not_contend() {
        let lines = [
            line(count::Contention::FalseSharing, 0x10, 5),
            line(count::Contention::LockLatency, 0x18, 7),
        ];
        let of = |module, range| kind(&lines, module, &[range]);
        assert_eq!(of("a", 0x10..0x18), Some((count::Contention::FalseSharing, 1.0)));
        assert_eq!(of("a", 0x10..0x20), Some((count::Contention::LockLatency, 7.0 / 12.0)));
        assert_eq!((of("a", 0x20..0x30), of("b", 0x10..0x20)), (None, None));
    }

    /// By hand: 1000 samples on one CPU of 1000 cycles each; 2500 cycles of 2000 ± 100 less 1000 ± √(63² + 50²).
    #[test]
    fn contention_is_what_a_run_on_one_cpu_lacks() {
        let pinned = Pinned { samples: 2000, ..Pinned::default() };
        let cycles = Interval::new(2500.0, 2400.0, 2600.0);
        let found = cost(cycles, &pinned, (2000.0, 0.0), 1000).unwrap();
        assert!((found.value - 1500.0).abs() < 1e-9);
        let error = 100_f64.hypot(63.2).hypot(50.0);
        assert!((found.above() - error).abs() < 1.0, "{found:?}");
        // Alone, the clock may have been 1.25 times as high.
        assert!((found.low - 1150.0).abs() < 1.0, "{found:?}");
        // About as much in both runs, and less in the parallel one.
        let alike = cost(Interval::new(1050.0, 1000.0, 1100.0), &pinned, (2000.0, 0.0), 1000);
        assert_eq!(alike.map(|found| found.low), Some(0.0));
        let less = cost(Interval::new(950.0, 900.0, 1000.0), &pinned, (2000.0, 0.0), 1000);
        assert_eq!(less, None);
        // Siblings of a core slow each other, too.
        let smt = Pinned { smt: true, ..pinned.clone() };
        let found = cost(cycles, &smt, (2000.0, 0.0), 1000).unwrap();
        assert!((found.value - 1500.0).abs() < 1e-9 && found.low < 500.0, "{found:?}");
        // Where runs do other work by 40 %.
        let other = cost(cycles, &pinned, (2000.0, 0.4), 1000).unwrap();
        assert!(other.low < 1100.0 && other.high > 1900.0, "{other:?}");
    }
}
