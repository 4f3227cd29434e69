//! Two reports compared: text, Markdown for pull requests, JUnit for continuous integration.

mod cells;
mod gates;
mod junit;
mod markdown;
mod text;

pub use junit::render as junit;
pub use markdown::render as markdown;
pub use text::render;
