//! The event tables as text: which there are, what one holds, what is wrong with it, and how its
//! events are grouped.

mod check;
mod encoding;
mod list;
mod node;
mod perf_stat;
mod plan;
mod table;

pub use check::check;
pub use list::list;
pub use node::node;
pub use perf_stat::{PerfStat, perf_stat};
pub use plan::plan;
pub use table::table;
