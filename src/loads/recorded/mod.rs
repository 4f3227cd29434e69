//! Recorded samples of loads and stores (PEBS, IBS) → sums of instructions and variables, shared cache lines,
//! critical loads.
//!
//! | file | concern |
//! |---|---|
//! | `data_source` | what `perf_mem_data_src` of a sample says |
//! | `ibs` | the raw data of a sample of AMD's IBS |
//! | `sum` | the samples of one instruction, variable or event |
//! | `lines` | cache lines that several threads access, one of which writes |
//! | `critical` | what makes a load or a branch critical |

mod critical;
mod data_source;
mod ibs;
mod lines;
mod sum;

pub use critical::{
    Critical, HARD_BRANCH, Judgement, LEAST_EXECUTED, LEAST_MISSES, MOST_PARALLEL, Regularity,
    is_hard, judge,
};
pub use data_source::{DataSource, Level, Operation, Snoop, Translation};
pub use ibs::IbsOp;
pub use lines::{Accesses, Actor, Line, LineAccess, Lines, MOST_LINES, SharedLine, Sharing};
pub use sum::{Access, Sum};
