//! µops of instructions and the ports that they can use, and how µops load the ports of a core.
//!
//! | file | concern |
//! |---|---|
//! | `uops` | ports, and the µops of an instruction, as data |
//! | `file` | the format of the tables in `events/ports/` |
//! | `invalid` | errors in a table |
//! | `table` | lookup by instruction form |
//! | `rename` | instructions that need no port of their own: idioms, eliminated moves, fused pairs |
//! | `spread` | the lower bound of the ports, and µops spread so that it is reached |
//!
//! Everything here is a prediction from published tables. A form that a table lacks is `None`.

mod file;
mod invalid;
mod rename;
mod spread;
mod table;
#[cfg(test)]
mod tests;
mod uops;

pub use invalid::Invalid;
pub use spread::{Spread, spread};
pub use table::Ports;
pub use uops::{PortSet, Uops, Use};
