//! The screens of the drill-down.

/// A level of the drill-down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Screen::Tree => "tree",
            Screen::Functions => "functions",
            Screen::Blocks => "blocks",
            Screen::Block => "block",
            Screen::Estimate => "estimate",
            Screen::EstimatedFunctions => "estimated-functions",
            Screen::EstimatedCode => "estimated-code",
            Screen::EstimatedSource => "estimated-source",
            Screen::EstimatedBlock => "estimated-block",
            Screen::Comparison => "comparison",
            Screen::ComparedCode => "compared-code",
            Screen::Calls => "calls",
            Screen::Intervals => "intervals",
        }
    }
}
