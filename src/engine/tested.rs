//! A core by its self-test: the answers where they are needed now, and which of several tables they leave.

use bench::{BlockMeasurer, Options, Pmu};
use std::sync::Arc;
use tma::identity::settle;
use tma::self_test::Answers;
use tma::tables::Library;
use tma::{Core, Result};

/// The answers of this processor's self-test, which is made if it was not.
///
/// # Errors
/// The sandbox cannot be started.
pub(crate) fn answers(core: &Arc<Core>) -> Result<Option<&Answers>> {
    if core.answers().is_none() {
        let pmu = Pmu::Absent(String::new());
        let options = Options { core: core.clone(), pmu, counts: false, ..Options::quick() };
        BlockMeasurer::new(options).self_test()?;
    }
    Ok(core.answers())
}

/// The core by the one table that its self-test leaves of several, where it leaves one; otherwise by the facts in which
/// the tables left agree. A processor whose self-test cannot be made stays as it was.
///
/// # Errors
/// A table cannot be read.
pub fn settled(core: Arc<Core>, library: &Library) -> Result<Arc<Core>> {
    let open = core.identity.as_ref().filter(|found| found.table.is_none() && core.table.is_none());
    let Some(identity) = open.filter(|found| found.candidates.len() > 1) else { return Ok(core) };
    let Some(answers) = answers(&core).ok().flatten() else { return Ok(core) };
    let found = settle(Arc::unwrap_or_clone(identity.clone()), answers.into(), library)?;
    let facts = match &found.table {
        Some(name) => Core::modelled(library, name)?,
        None => Core::in_common(library, &found.candidates)?,
    };
    let Core { table, shared, latencies, ports, .. } = facts;
    let identity = Some(Arc::new(found));
    Ok(Arc::new(Core { table, shared, latencies, ports, identity, ..Arc::unwrap_or_clone(core) }))
}
