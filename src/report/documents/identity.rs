//! Which processor this is, by what, and what contradicts: `tdtool.identity/1`.

use pmu::machine::{Kind, Machine};
use serde::Serialize;
use tma::Result;
use tma::cpuid::Fingerprint;
use tma::identity::{Identity, Measured, identify, settle};
use tma::tables::Library;

/// The identity of a processor: of its first kind of core, and of each.
#[derive(Debug, Clone, Serialize)]
pub struct Document {
    schema: &'static str,
    /// The first kind of core.
    #[serde(flatten)]
    pub identity: Identity,
    /// Each kind of core.
    pub cores: Vec<KindOfCore>,
    /// Whether a CPU may be moved between kinds at any time: what was read is of the moment.
    pub kinds_move: bool,
}

/// One kind of core.
#[derive(Debug, Clone, Serialize)]
pub struct KindOfCore {
    /// Its CPUs; empty where a dump of CPUID does not name them.
    pub cpus: Vec<u32>,
    /// Identity.
    #[serde(flatten)]
    pub identity: Identity,
    /// Its features, caches and brand.
    pub fingerprint: Option<Fingerprint>,
}

impl Document {
    /// Lets rates of the self-test, of the first kind of core, decide what features left open.
    ///
    /// # Errors
    /// A candidate's table cannot be read.
    pub fn settle(&mut self, measured: Measured, library: &Library) -> Result<()> {
        self.identity = settle(std::mem::take(&mut self.identity), measured, library)?;
        if let Some(first) = self.cores.first_mut() {
            first.identity = self.identity.clone();
        }
        Ok(())
    }
}

/// Identifies the processor of `machine` with the tables of `library`.
///
/// # Errors
/// A table's head cannot be read.
pub fn identity(machine: &Machine, library: &Library) -> Result<Document> {
    let core = |kind: &Kind| {
        Ok(KindOfCore {
            cpus: machine.cpus_of(kind),
            identity: identify(&kind.cpuid, library)?,
            fingerprint: Fingerprint::of(&kind.cpuid),
        })
    };
    let cores: Vec<KindOfCore> = machine.kinds.iter().map(core).collect::<Result<_>>()?;
    let identity = cores.first().map(|core| core.identity.clone()).unwrap_or_default();
    let kinds_move = machine.kinds_move();
    Ok(Document { schema: "tdtool.identity/1", identity, cores, kinds_move })
}
