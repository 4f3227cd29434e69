//! Recorded branch stacks (LBR), the last branches before each sample → edges, straight code, loops.
//!
//! | file | concern |
//! |---|---|
//! | `analysis` | a recording → everything about one event |
//! | `window` | a sample's branches, without what the hardware got wrong |
//! | `counted` | what a sampled event counts |
//! | `sums` | edges, ranges, sampled instructions, distributions |
//! | `walk` | a loop, and the way through it: iterations, trips |
//! | `code` | the code around branches: functions, loops, calls |
//! | `code_misses` | windows that end in a miss of the instruction cache → lines, prefetch sites |
//!
//! Semantics: linux/perf_event.h (`perf_branch_entry`): entries are newest first, and the cycles of an
//! entry are those since the branch *before* it. Ranges as in llvm-profgen and AutoFDO; iterations
//! as in Jamilan et al., "APT-GET" (EuroSys 2022).

mod analysis;
mod code;
mod code_misses;
mod counted;
mod sums;
mod walk;
mod window;

pub use analysis::{Analysis, BlockSum, Places, analyse, of_counts};
pub use code_misses::{Before, CodeMisses, DISTANCE, MissedLine};
pub use counted::Counts;
pub use sums::{Distribution, EdgeSum, RangeSum, Sums};
pub use walk::{LoopShape, LoopSum};
pub use window::{Edge, LONGEST_RANGE, Range, Skipped, Step, Window, windows};
