//! The part of a comparison about code: functions, loops and blocks of both sides, by the time that they gain or lose.

use super::row::DiffRow;
use crate::documents::estimate::Bottleneck;
use serde::Serialize;
use tma::Address;

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
