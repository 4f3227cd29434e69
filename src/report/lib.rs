//! Documents and every rendering of them; nothing here measures.
//!
//! | module | concern |
//! |---|---|
//! | [`documents`] | reports, comparisons, dependency analyses and the others, as data |
//! | [`render`] | text, CSV, pages and graphs of the documents; JSON is their serde form |
//! | [`flame`] | call stacks, with what their time goes to: folded, or a flame graph |
//! | [`format`](mod@format) | numbers as people write them |
//! | [`files`] | files written whole, never over an input |
//!
//! Nothing here prints, touches a terminal or exits.

pub mod documents;
pub mod files;
pub mod flame;
pub mod format;
pub mod render;
