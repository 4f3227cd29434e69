//! The flow through a function after its run: counts of all blocks and edges from those of some blocks.
//!
//! | file | concern |
//! |---|---|
//! | `network` | arcs and nodes; counts that follow by conservation |
//! | `fit` | counts of the other arcs, in proportion to what flows beside them |
//! | `function` | a function as a network |

mod fit;
mod function;
mod network;

pub use function::{Edge, Flow, Known, Seen, flow};
pub use network::{Flowing, How};
