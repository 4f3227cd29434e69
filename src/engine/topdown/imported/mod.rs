//! Recorded counts → report.

mod ask;
mod evaluate;
mod level;
mod which_table;

pub use ask::ImportAsk;
pub use evaluate::imported;
