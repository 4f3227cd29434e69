//! The event tables as text: which there are, what one holds, what is wrong with it, and how its
//! events are grouped.

mod check;
mod encoding;
mod list;
mod node;
mod plan;
mod table;

pub use check::check;
pub use list::list;
pub use node::node;
pub use plan::plan;
pub use table::table;
