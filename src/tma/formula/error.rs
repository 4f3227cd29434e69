//! What is wrong with a formula, and where.

use std::fmt;

/// A formula that does not parse: where, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormulaError {
    /// Byte offset into the formula text.
    pub at: usize,
    /// What was found or expected there.
    pub message: String,
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: {}", self.at + 1, self.message)
    }
}

impl std::error::Error for FormulaError {}
