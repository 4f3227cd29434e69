//! Everything the screens show and remember. Plain data: no terminal, no threads, no files.
//!
//! | file | concern |
//! |---|---|
//! | `screens` | all of it, and the screen that is shown |
//! | `tree`, `tree_rows`, `history` | the top-down tree |
//! | `intervals` | the intervals over time, and their phases |
//! | `functions`, `samples` | functions, and which samples they are of |
//! | `blocks`, `loops` | the blocks of a function |
//! | `counts` | counts of another run, or of recorded branches |
//! | `loads` | recorded samples of loads |
//! | `block` | a measured block |
//! | `calls` | callers and callees of a function |
//! | `comparison` | two measurements compared |
//! | `estimate`, `estimate_renewed`, `estimate_source` | an estimated top-down |
//! | `output` | what the measured command has written |
//! | `list` | a cursor in rows; `load`: data that arrives later; `prompt`; `matches`: search |

mod block;
mod blocks;
mod calls;
mod comparison;
mod counts;
mod estimate;
mod estimate_renewed;
mod estimate_source;
mod functions;
mod history;
mod intervals;
mod list;
mod load;
mod loads;
mod loops;
mod matches;
mod output;
mod prompt;
mod samples;
mod screens;
mod tree;
mod tree_rows;

pub use block::{Job, Line, ShownBlock};
pub use blocks::{BlockRow, Blocks, SourceLines};
pub use calls::CallRow;
pub use comparison::ComparedRow;
pub use counts::{BlockCounts, Counts, Each, Mispredicted};
pub use estimate::{EstimateJob, Piece, ProgramRow};
pub use estimate_source::SourceRow;
pub use functions::{Order, WITH_LINES, is_same};
pub use intervals::mean;
pub use load::{Failure, Load, Searchable, catch_panic, paragraph};
pub use loads::{LoadSamples, Loads};
pub use matches::{Wanted, matches};
pub use prompt::{Ask, Prompt};
pub use samples::{SampleFilter, thread_name};
pub use screens::State;
pub use tree::Progress;
pub use tree_rows::TreeRow;
