//! The list of what is corrected, as data.

/// How sure a correction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// A pair of blocks of tests/figures/corrections.py shows it on Golden Cove.
    Measured,
    /// Its source says so; no processor at hand shows it.
    Untested,
}

/// One correction of iced-x86.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Correction {
    /// Short, as the measuring script names it.
    pub name: &'static str,
    /// What iced-x86 says.
    pub given: &'static str,
    /// What is said here.
    pub said: &'static str,
    /// Where that holds.
    pub cores: &'static str,
    /// Who says so.
    pub source: &'static str,
    /// How sure it is.
    pub evidence: Evidence,
}

/// All of them.
pub const CORRECTIONS: &[Correction] = &[];
