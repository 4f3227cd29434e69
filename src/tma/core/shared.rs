//! What several tables have in common, where nothing decides among them.

use super::{Core, ReorderBuffer};
use crate::Result;
use crate::tables::{Facts, Library};
use std::sync::Arc;

/// What several tables have in common.
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
    /// What the tables `names` have in common; nothing of no table.
    ///
    /// # Errors
    /// No such table, or one that cannot be read.
    pub(crate) fn of(library: &Library, names: &[String]) -> Result<Option<Self>> {
        let tables: Result<Vec<_>> = names.iter().map(|name| library.load(name)).collect();
        let cores = tables?.into_iter().map(|t| Core { table: Some(t), ..Core::default() });
        let mut all: Option<Self> = None;
        for core in cores {
            let one = Self {
                tables: names.to_vec(),
                facts: core.facts().clone(),
                width: core.width(),
                reorder_buffer: core.reorder_buffer(),
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

impl Core {
    /// The core that has what the tables `names` have in common: where nothing decides among them.
    ///
    /// # Errors
    /// As [`Core::modelled`].
    pub fn in_common(library: &Library, names: &[String]) -> Result<Self> {
        let Some(shared) = Shared::of(library, names)? else { return Ok(Self::default()) };
        let file = |name: &Option<String>, of: fn(&Library, &str) -> Result<(String, String)>| {
            name.as_ref().map(|name| of(library, name)).transpose()
        };
        let latencies = file(&shared.facts.latencies, Library::latencies)?;
        let ports = file(&shared.facts.ports, Library::ports)?;
        Ok(Self { shared: Some(Arc::new(shared)), latencies, ports, ..Self::default() })
    }
}
