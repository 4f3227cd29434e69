//! Documents as text, CSV and graphs. Renderers compute nothing.

pub mod block;
pub mod deps;
pub mod format;
pub mod microbench;
pub mod report;
