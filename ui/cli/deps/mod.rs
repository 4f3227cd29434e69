//! `tdtool deps`: data dependencies of a block, or of several that run in sequence as a loop.

mod arguments;
mod batch;
mod run;

pub use arguments::DepsArgs;
pub use run::run;
