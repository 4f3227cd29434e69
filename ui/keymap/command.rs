//! The meanings that a key can have, and the screens on which it has them.

use serde::Serialize;
use std::fmt;

/// A command of the drill-down, by these names in a config file: `NextMatch` is `next-match`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    Quit,
    Help,
    Drill,
    Callers,
    Estimate,
    Output,
    Back,
    Up,
    Down,
    PageUp,
    PageDown,
    HalfUp,
    HalfDown,
    Top,
    Bottom,
    Search,
    NextMatch,
    PreviousMatch,
    Filter,
    Sort,
    Invert,
    Toggle,
    Expand,
    Collapse,
    ExpandAll,
    CollapseAll,
    Hottest,
    NextHot,
    PreviousHot,
    NextSymbol,
    PreviousSymbol,
    Source,
    Offsets,
    Samples,
    Details,
    DetailsDown,
    DetailsUp,
    NextPart,
    Module,
    Thread,
    NextEvent,
    Intervals,
    ZoomIn,
    ZoomOut,
    Earlier,
    Later,
    Freeze,
    Again,
    Cancel,
    Copy,
    Export,
    Evidence,
    Suspend,
    Redraw,
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A level of the drill-down, by these names in messages: `EstimatedCode` is `estimated-code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Screen {
    /// The top-down tree.
    Tree,
    /// Functions with samples.
    Functions,
    /// The blocks of one function.
    Blocks,
    /// One block, measured in isolation.
    Block,
    /// The estimated top-down tree of a program.
    Estimate,
    /// Its functions.
    EstimatedFunctions,
    /// The loops and blocks of one of them.
    EstimatedCode,
    /// Its source lines.
    EstimatedSource,
    /// One loop or block of them: what is known of it, and its instructions.
    EstimatedBlock,
    /// The functions of two measurements, by the time that they gain or lose.
    Comparison,
    /// The loops and blocks of one of them.
    ComparedCode,
    /// Callers and callees of a function.
    Calls,
    /// The intervals over time, and their phases.
    Intervals,
}

impl fmt::Display for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Screen {
    /// Whether it shows a part of an estimate.
    pub fn is_estimate(self) -> bool {
        use Screen::{
            Estimate, EstimatedBlock, EstimatedCode, EstimatedFunctions, EstimatedSource,
        };
        matches!(
            self,
            Estimate | EstimatedFunctions | EstimatedCode | EstimatedSource | EstimatedBlock
        )
    }

    /// Whether it shows a part of a comparison.
    pub fn is_comparison(self) -> bool {
        matches!(self, Screen::Comparison | Screen::ComparedCode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Config files have these names.
    #[test]
    fn names_are_words_with_dashes() {
        let all = [Command::Quit, Command::NextMatch, Command::HalfUp, Command::PreviousSymbol];
        let names = ["quit", "next-match", "half-up", "previous-symbol"];
        assert_eq!(all.map(|one| one.to_string()), names);
    }
}
