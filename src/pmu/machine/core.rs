//! The description of the measured core: table, facts, caches.

use super::description::Machine;
use super::matching::choose;
use std::sync::Arc;
use tma::tables::Library;
use tma::{Core, Result};

impl Machine {
    /// The core of this machine, described by its table or by the one that the user `forced`; on a
    /// hybrid the performance core. Where the identity leaves several tables, it has what they all state;
    /// where none, only the caches are known.
    ///
    /// # Errors
    /// There is no table of the forced name; a table or its latencies cannot be read.
    pub fn core(&self, library: &Library, forced: Option<&str>) -> Result<Core> {
        let chosen = choose(self, library, forced)?;
        let own = match forced {
            Some(_) => choose(self, library, None)?,
            None => chosen.clone(),
        };
        let identity = self.identities(library)?.into_iter().next();
        let mut core = match (chosen.first(), &identity) {
            (Some(found), _) => Core::modelled(library, &found.table)?,
            (None, Some(identity)) => Core::in_common(library, &identity.candidates)?,
            (None, None) => Core::default(),
        };
        let is_own = |name: &str| {
            own.iter().any(|o| o.table == name)
                || identity.iter().any(|i| i.candidates.iter().any(|c| c == name))
        };
        core.foreign = forced.is_some() && !core.uarch().is_some_and(is_own);
        core.identity = identity.map(Arc::new);
        core.fingerprint = self.fingerprint().map(Arc::new);
        core.cpu = self.cpu.clone();
        (core.l1_data, core.l1_code) = self.l1;
        Ok(core)
    }
}
