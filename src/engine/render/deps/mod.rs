//! Dependencies as text with arrows, as CSV rows and as a graph.

mod csv;
mod dot;
mod lanes;
mod text;

pub use csv::{HEADER, rejected, row};
pub use dot::dot;
pub use text::{Drawing, text};
