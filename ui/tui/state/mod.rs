//! Everything the screens show and remember. Plain data: no terminal, no threads, no files.
//!
//! | file | concern |
//! |---|---|
//! | `screens` | all of it, and the screen that is shown; prompt and output |
//! | `tree` | the top-down tree |
//! | `intervals` | the intervals over time, and their phases; the history of a node |
//! | `functions` | functions, which samples they are of, and their callers |
//! | `blocks` | the blocks of a function; a measured block |
//! | `counts` | counts of another run, of recorded branches and of loads |
//! | `comparison` | two measurements compared |
//! | `estimate`, `estimate_source` | an estimated top-down |
//! | `list` | a cursor in rows, search and filter |
//! | `load` | data that arrives later |

mod blocks;
mod comparison;
mod counts;
mod estimate;
mod estimate_source;
mod functions;
mod intervals;
mod list;
mod load;
mod screens;
mod tree;

pub use blocks::{BlockRow, Blocks, Job, ShownBlock, SourceLines, TextLine};
pub use comparison::ComparedRow;
pub use counts::{BlockCounts, Counts, Each, LoadSamples, Loads, Mispredicted};
pub use estimate::{EstimateJob, Piece, ProgramRow};
pub use estimate_source::SourceRow;
pub use functions::{CallRow, Order, SampleFilter, WITH_LINES, is_same, thread_name};
pub use intervals::mean;
pub use list::{List, Wanted, matches};
pub use load::{Failure, InPlace, Load, Searchable, catch_panic, paragraph};
pub use screens::{Ask, Prompt, State};
pub use tree::{Progress, TreeRow};
