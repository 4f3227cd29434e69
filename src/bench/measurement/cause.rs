//! Causes of assists.

use super::bound_names;

/// The cause of an assist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Legacy SSE code where upper halves of vector registers are not zero.
    Transition,
    /// The x87 register stack overflows, or an empty register is read.
    X87Stack,
    /// Subnormal operands or results.
    Subnormals,
    /// Masked accesses to pages that are not mapped.
    SuppressedFaults,
}

impl Cause {
    /// As documents have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Transition => bound_names::TRANSITION,
            Self::X87Stack => bound_names::X87_STACK,
            Self::Subnormals => bound_names::SUBNORMALS,
            Self::SuppressedFaults => bound_names::SUPPRESSED_FAULTS,
        }
    }

    /// Description of the measurement without it.
    pub fn avoided(self) -> &'static str {
        match self {
            Self::Transition => "vzeroupper before its SSE instructions",
            Self::X87Stack => "its x87 stack filled before and emptied after each iteration",
            Self::Subnormals => "no subnormal numbers",
            Self::SuppressedFaults => "masks that select everything",
        }
    }
}
