//! The tables that the windows of a fleet become, `tdtool.fleet/1`: their columns, and the rows of a window. Later
//! versions only add columns.
//!
//! | file | concern |
//! |---|---|
//! | `columns` | a column: its name, type and value |
//! | `rows` | the columns of each table |
//! | [`Batch`] | rows, column by column |

mod batch;
mod columns;
mod rows;

pub use batch::{Batch, Data};
pub use columns::{Cell, Column, Kind};
pub use rows::{columns, rows};

/// The schema's name.
pub const SCHEMA: &str = "tdtool.fleet";

/// Its version, in the metadata of each file and the column `schema` of each row.
pub const VERSION: i64 = 1;

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// A row for each window.
    Windows,
    /// Nodes of the top-down tree.
    Nodes,
    /// Functions with samples.
    Functions,
    /// Their hottest blocks.
    Blocks,
    /// Counted events.
    Counts,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Windows, Self::Nodes, Self::Functions, Self::Blocks, Self::Counts];

    /// Its name: a folder, and what queries call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Windows => "windows",
            Self::Nodes => "nodes",
            Self::Functions => "functions",
            Self::Blocks => "blocks",
            Self::Counts => "counts",
        }
    }
}
