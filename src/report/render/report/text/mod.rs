//! The report as people read it in a terminal, a pipe or a file.

mod annotated;
mod code;
mod conclusion;
mod estimate;
mod hot_table;
mod per_function;
mod renderer;
mod software;
mod style;
mod tree;

pub use renderer::{SHORT_INFOS, render, short_label};
pub use style::Style;
