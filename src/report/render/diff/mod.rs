//! Two reports compared: text, CSV, Markdown for pull requests, JUnit for continuous integration.

mod cells;
mod code;
mod csv;
mod gates;
mod junit;
mod markdown;
mod text;

pub use code::{gain, place, plain, sentence};
pub use csv::render as csv;
pub use junit::render as junit;
pub use markdown::render as markdown;
pub use text::render;
