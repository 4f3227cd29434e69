//! From a question to a document, and every rendering of it.
//!
//! | module | concern |
//! |---|---|
//! | [`analysis`] | takes a request through the crates below: choose, plan, collect or read, evaluate |
//! | [`documents`] | what a report, a comparison or a dependency analysis says |
//! | [`render`] | text, CSV and graphs of the documents; JSON is their serde form |
//!
//! Nothing here prints, touches a terminal or exits.

pub mod analysis;
pub mod documents;
pub mod render;
