//! Tree, evaluation, thresholds, bottleneck, advice.
//!
//! [`Evaluator`] turns [`crate::counts::Counts`] into one [`NodeResult`] per node of a table;
//! [`Verdict`] says which nodes are flagged and which one is the bottleneck. Pure arithmetic:
//! nothing here measures or formats.

mod evaluate;
mod jackknife;
mod layout;
mod verdict;

pub use evaluate::{Evaluation, Evaluator, NodeResult};
pub use jackknife::{MIN_READINGS, student_t95};
pub use verdict::{MISMEASURED, UNDECIDED_WITHOUT_ERROR, Undecided, Verdict};

#[cfg(test)]
mod tests;
