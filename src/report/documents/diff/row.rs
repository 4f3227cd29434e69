//! Rows of a comparison: both values, their difference, and its judgement against both errors; functions, loops and
//! blocks by the time that they gain or lose.

use crate::documents::estimate::Bottleneck;
use crate::documents::report::Place;
use serde::Serialize;
use tma::Address;

/// The judgement of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Larger in B by more than both errors together.
    More,
    /// Smaller in B by more than both errors together.
    Less,
    /// Apart by more than both errors together, but those of a single run leave out how runs differ.
    OneRun,
    /// Within the errors.
    Same,
    /// Both values are there, but not both errors: the size is given, no judgement.
    Unjudged,
    /// Absent on one side, or on both.
    Absent,
}

/// One row: a node or info in both reports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiffRow {
    /// Id.
    pub id: String,
    /// Shown name.
    pub label: String,
    /// Level in the tree; 0 for infos.
    pub level: u32,
    /// Value and error in A.
    pub a: Option<f64>,
    /// Half width of A's 95 % interval.
    pub a_error: Option<f64>,
    /// Value in B.
    pub b: Option<f64>,
    /// Half width of B's 95 % interval.
    pub b_error: Option<f64>,
    /// B − A where both are there.
    pub difference: Option<f64>,
    /// Both errors, as independent ones: √(ea² + eb²).
    pub margin: Option<f64>,
    /// The judgement.
    pub judgement: Judgement,
    /// Unit of the values; `ratio` for shares, empty for plain numbers.
    pub unit: String,
    /// Part of the measurement.
    #[serde(flatten)]
    pub place: Place,
}

/// Control of false findings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FalseFindings {
    /// `Benjamini-Hochberg`.
    pub method: &'static str,
    /// Expected share of false findings, at most.
    pub rate: f64,
    /// Rows that were judged.
    pub rows: usize,
    /// Rows that are beyond their own errors, but not beyond what chance makes among so many.
    pub withdrawn: usize,
}

/// A value of either report, with what identifies it.
#[derive(Debug, Clone, Default)]
pub struct Side {
    /// Id.
    pub id: String,
    /// Shown name.
    pub label: String,
    /// Level in the tree; 0 of others.
    pub level: u32,
    /// The value.
    pub value: Option<f64>,
    /// Half width of its 95 % interval.
    pub error: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// Part of the measurement.
    pub place: Place,
}

impl DiffRow {
    /// The size of its change; of a row that only one side has, its value.
    pub fn change(&self) -> f64 {
        self.difference.or(self.a).or(self.b).unwrap_or(0.0).abs()
    }

    /// Whether it changed by more than both errors.
    pub fn is_judged(&self) -> bool {
        matches!(self.judgement, Judgement::More | Judgement::Less | Judgement::OneRun)
    }

    /// Whether no value that it has is beyond its error, and no change either: too few samples, say.
    pub fn is_below_error(&self) -> bool {
        let error = match (self.a, self.b) {
            (Some(_), Some(_)) => self.margin,
            (Some(_), None) => self.a_error,
            _ => self.b_error,
        };
        let most = self.a.into_iter().chain(self.b).fold(0.0, f64::max);
        !self.is_judged() && error.is_some_and(|error| most <= error)
    }

    /// A row of what both sides have, or one of them.
    pub fn of(named: &Side, a: Option<&Side>, b: Option<&Side>) -> Self {
        let value = |s: Option<&Side>| s.and_then(|s| s.value);
        let error = |s: Option<&Side>| s.and_then(|s| s.error);
        let difference = value(a).zip(value(b)).map(|(a, b)| b - a);
        let margin = error(a).zip(error(b)).map(|(a, b)| a.hypot(b));
        let judgement = match (difference, margin) {
            (None, _) => Judgement::Absent,
            (Some(_), None) => Judgement::Unjudged,
            (Some(d), Some(m)) if d > m => Judgement::More,
            (Some(d), Some(m)) if d < -m => Judgement::Less,
            _ => Judgement::Same,
        };
        Self {
            id: named.id.clone(),
            label: named.label.clone(),
            level: named.level,
            a: value(a),
            a_error: error(a),
            b: value(b),
            b_error: error(b),
            difference,
            margin,
            judgement,
            unit: named.unit.clone(),
            place: named.place.clone(),
        }
    }
}

/// Functions, loops and blocks, by time gained or lost: those with the largest change first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CodeDiff {
    /// The estimated part of the program, of two estimates.
    pub program: Option<CodeRow>,
    /// Functions.
    pub functions: Vec<CodeRow>,
    /// Loops, of two estimates.
    pub loops: Vec<CodeRow>,
    /// Blocks that are no loop.
    pub blocks: Vec<CodeRow>,
    /// Whether a side is a single run: its errors are of samples, and leave out how runs differ.
    pub is_single: bool,
}

impl CodeDiff {
    /// Share of a side's time from which a row is of interest whatever its error.
    const MAJOR: f64 = 0.05;

    /// Whether a row is below its error, and small on both sides.
    pub fn is_minor(&self, row: &DiffRow) -> bool {
        let is_small = |of: fn(&DiffRow) -> Option<f64>| {
            let all: f64 = self.functions.iter().filter_map(|one| of(&one.time)).sum();
            of(row).is_none_or(|value| value < Self::MAJOR * all)
        };
        row.is_below_error() && is_small(|row| row.a) && is_small(|row| row.b)
    }
}

/// How a row of A and one of B were found to be the same code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Matched {
    /// By name.
    Name,
    /// By the name in the source: compilers copied, split or renamed it.
    Copies,
    /// By the instructions of two blocks of one function, wherever they are.
    Shape,
    /// By their mnemonics: registers or constants differ.
    Mnemonics,
    /// By their hottest source line.
    Line,
    /// Not matched: of one side.
    None,
}

/// A function, loop or block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodeRow {
    /// File name of its module.
    pub module: String,
    /// Number of a loop's or block's function in `functions`.
    pub function: Option<usize>,
    /// First addresses in A and B.
    pub start: [Option<Address>; 2],
    /// Addresses after the last instructions.
    pub end: [Option<Address>; 2],
    /// How A's row was found in B.
    pub matched: Matched,
    /// Its time, or its share of all samples; `id` is the name of the function.
    #[serde(flatten)]
    pub time: DiffRow,
    /// Bottlenecks of estimates.
    pub bottleneck: [Option<Bottleneck>; 2],
    /// Core cycles of an entry, of a loop those of an iteration.
    pub cycles_per_entry: [Option<f64>; 2],
    /// Entries in a run.
    pub entries: [Option<f64>; 2],
    /// Shares of Retiring, Bad Speculation, Frontend, Backend, and what is unexplained.
    pub level1: [Option<[f64; 5]>; 2],
    /// Parts of the time of two estimates, the largest change first. Errors reach to the end of the interval that is on
    /// the other value's side.
    pub parts: Vec<DiffRow>,
}

impl CodeRow {
    /// How much it gains or loses; of a row that only one side has, all.
    pub fn change(&self) -> f64 {
        self.time.change()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(value: Option<f64>, error: Option<f64>) -> Side {
        let (unit, place) = ("ratio".to_owned(), Place::default());
        Side { id: "X".into(), label: "X".into(), level: 1, value, error, unit, place }
    }

    #[test]
    fn a_difference_counts_only_beyond_both_errors() {
        // Hand calculation: errors 0.03 and 0.04 make a margin of 0.05.
        let judged = |d: f64| {
            let (a, b) = (side(Some(0.3), Some(0.03)), side(Some(0.3 + d), Some(0.04)));
            DiffRow::of(&a, Some(&a), Some(&b)).judgement
        };
        assert_eq!(judged(0.06), Judgement::More);
        assert_eq!(judged(0.04), Judgement::Same);
        assert_eq!(judged(-0.06), Judgement::Less);
    }

    #[test]
    fn absent_is_absent_and_never_zero() {
        let (a, b) = (side(Some(0.3), None), side(None, None));
        let r = DiffRow::of(&a, Some(&a), Some(&b));
        assert_eq!((r.b, r.difference, r.judgement), (None, None, Judgement::Absent));
    }
}
