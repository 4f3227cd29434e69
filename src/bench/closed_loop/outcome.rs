//! A loop that was timed as a loop.

use crate::initial::values::Values;
use crate::timing::form_timing::FormTiming;

/// The timing of a loop run as a loop.
pub(crate) struct ClosedLoop {
    /// The samples.
    pub timed: FormTiming,
    /// Initial values.
    pub values: Values,
    /// Pages it accesses.
    pub pages: Vec<u64>,
    /// Copies in the code.
    pub copies: usize,
    /// How it was run, for the reader.
    pub how: String,
}
