//! The core described by several tables where nothing decides among them.

use super::Core;
use crate::Result;
use crate::tables::{Library, Shared};
use std::sync::Arc;

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
