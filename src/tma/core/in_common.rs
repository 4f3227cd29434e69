//! What the core has where nothing decides among several tables.

use super::{Core, Shared};
use crate::Result;
use crate::tables::Library;
use std::sync::Arc;

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
