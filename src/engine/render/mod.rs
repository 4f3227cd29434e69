//! Documents as text, CSV and graphs. Renderers compute nothing.

pub mod block;
pub mod csv;
pub mod deps;
pub mod format;
pub mod function_blocks;
pub mod microbench;
pub mod report;
