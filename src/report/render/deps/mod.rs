//! Dependencies as text with arrows, as CSV rows and as a graph.

mod bound;
mod csv;
mod dot;
mod drawing;
mod lanes;
mod text;

pub use csv::{HEADER, rejected, row};
pub use dot::dot;
pub use drawing::Drawing;
pub use text::text;
