//! `tdtool block`: measure one basic block, several regions, or a file of blocks.

mod against;
mod arguments;
mod bar;
mod batch;
mod current_step;
mod judge;
mod knobs;
mod predicted;
mod requests;
mod rows_file;
mod run;

pub use arguments::BlockArgs;
pub use run::run;
