//! The result of timing a loop as a loop.

use crate::checks::Footprint;
use crate::initial::run_setup::RunSetup;
use crate::measurement::Execution;
use crate::timing::form_timing::FormTiming;
use crate::values::Values;

/// The timing of a loop run as a loop.
pub(crate) struct ClosedLoop {
    /// The samples.
    pub timed: FormTiming,
    /// Its traced run; none with a program's values.
    pub setup: Option<RunSetup>,
    /// Initial values.
    pub values: Values,
    /// Pages it accesses.
    pub pages: Vec<u64>,
    /// Copies in the code.
    pub copies: usize,
    /// Whether the loop is this block and no other.
    pub is_one_block: bool,
    /// Iterations of a long run.
    pub iterations: usize,
    /// Offsets of the loop within a cache line.
    pub aligns: Vec<usize>,
    /// Pages and lines that an execution with a program's memory accesses.
    pub footprint: Option<Footprint>,
    /// Conditions of the run, for the reader.
    pub how: String,
    /// Executions of the program, each measured in isolation; none without a program's values.
    pub executions: Vec<Execution>,
}
