//! Mistakes in formulas.

use std::fmt;

/// A formula that does not parse: where, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormulaError {
    /// Byte offset into the formula text.
    pub at: usize,
    /// The text found or expected there.
    pub message: String,
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: {}", self.at + 1, self.message)
    }
}

impl std::error::Error for FormulaError {}

/// Why a formula that parses does not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uncompiled {
    /// Nothing has this name.
    Name(String),
    /// There is no such constant.
    Constant(String),
    /// It needs too large a stack, or too many operations.
    Large,
    /// Its branches are too long.
    Long,
}

impl fmt::Display for Uncompiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "unknown name `{name}`"),
            Self::Constant(name) => write!(f, "unknown constant `#{name}`"),
            Self::Large => f.write_str("the formula is too deep or too long"),
            Self::Long => f.write_str("the formula is too long"),
        }
    }
}

impl std::error::Error for Uncompiled {}
