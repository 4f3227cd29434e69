//! Tree, evaluation, thresholds, bottleneck, advice.
//!
//! [`Evaluator`] turns [`crate::counts::Counts`] into one [`NodeResult`] per node of a table;
//! [`Flags`] says which nodes are flagged and which one is the bottleneck. Pure arithmetic:
//! nothing here measures or formats.

mod evaluate;
mod flags;
mod jackknife;
mod layout;
mod result;
mod scratch;

pub use evaluate::Evaluator;
pub use flags::{Flags, MISMEASURED, UNDECIDED_WITHOUT_ERROR, Undecided};
pub use jackknife::{MIN_READINGS, student_t95};
pub use result::{Evaluation, NodeResult};

#[cfg(test)]
mod tests;
