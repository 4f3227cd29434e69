//! `tdtool.deps/1`: the dependencies of a region. Text and graphs are views of it.

mod analysed;
mod rows;

pub use analysed::document;
pub use rows::{
    Cycle, Cycles, Dependency, Document, Instruction, MayAlias, Step, Subject, Unmodelled,
};
