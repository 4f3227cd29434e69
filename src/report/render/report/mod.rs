//! The top-down report as text and CSV.

pub mod csv;
pub mod text;
