//! Typed event tables: what a microarchitecture counts and how that becomes a tree.
//!
//! | file | concern |
//! |---|---|
//! | [`schema`] | the shape of a table file |
//! | [`facts`] | its section `[facts]` |
//! | `compile`, `table` | a table file → a [`Table`] ready for use |
//! | `embedded`, `library` | tables built into the program; where tables come from |
//! | [`validate`] | everything that is wrong with a file |
//! | [`texts`] | what a node means |
//! | [`select`](mod@select) | node lists, as `--nodes` takes them |
//!
//! Files are parsed and compiled one at a time; start-up touches only the one it needs. Nothing here measures,
//! schedules or prints.

mod compile;
mod embedded;
pub mod facts;
mod library;
pub mod schema;
pub mod select;
mod table;
pub mod texts;
pub mod validate;

use crate::Result;

pub use compile::{Invalid, NodeText};
pub use embedded::{Bundle, Embedded, Packed, Rule, pack, plain_name};
pub use facts::Facts;
pub use library::{Head, Library};
pub use schema::{CoreKind, EventSpec, ExtraRegister, PmuKind, Ring, Signature};
pub use select::select;
pub use table::{Const, Event, EventId, Level1, Node, NodeId, NodeKind, Table};

/// Entries of a reorder buffer, with their source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReorderBuffer {
    /// Entries: µops, of which an instruction has one at least.
    pub entries: u32,
    /// Source of the number.
    pub source: String,
}

impl ReorderBuffer {
    /// The table's own statement, if it has one.
    pub(crate) fn stated(table: &Table) -> Option<Self> {
        let pipeline = &table.pipeline;
        let source =
            pipeline.source.clone().unwrap_or_else(|| "the table, without a source".into());
        (pipeline.reorder_buffer > 0).then_some(Self { entries: pipeline.reorder_buffer, source })
    }
}

/// Facts common to several tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shared {
    /// The tables.
    pub tables: Vec<String>,
    /// Facts that they all state alike; the others are not known.
    pub facts: Facts,
    /// Slots a cycle, if they all state the same.
    pub width: Option<u32>,
    /// The reorder buffer, if they all state the same.
    pub reorder_buffer: Option<ReorderBuffer>,
}

impl Shared {
    /// Facts common to the tables `names`; `None` for no table.
    ///
    /// # Errors
    /// No such table, or one that cannot be read.
    pub(crate) fn of(library: &Library, names: &[String]) -> Result<Option<Self>> {
        let mut all: Option<Self> = None;
        for name in names {
            let table = library.load(name)?;
            let one = Self {
                tables: names.to_vec(),
                facts: table.facts.clone(),
                width: Some(table.pipeline.width),
                reorder_buffer: ReorderBuffer::stated(&table),
            };
            all = Some(match all {
                None => one,
                Some(before) => Self {
                    facts: before.facts.in_common(&one.facts),
                    width: before.width.filter(|width| one.width == Some(*width)),
                    reorder_buffer: before
                        .reorder_buffer
                        .filter(|buffer| one.reorder_buffer.as_ref() == Some(buffer)),
                    tables: one.tables,
                },
            });
        }
        Ok(all)
    }

    /// Whether both state the same of the core, wherever they have it from.
    pub(crate) fn states_as(&self, other: &Self) -> bool {
        let entries = |of: &Self| of.reorder_buffer.as_ref().map(|buffer| buffer.entries);
        self.facts.in_common(&other.facts) == self.facts
            && other.facts.in_common(&self.facts) == other.facts
            && self.width == other.width
            && entries(self) == entries(other)
    }
}
