//! What the options of every command amount to.

use engine::known::Known;
use pmu::machine::Machine;
use std::path::PathBuf;
use tma::Result;
use tma::tables::Library;

/// The settings that commands and the drill-down share.
pub struct Settings {
    /// The event tables: built in, and those of `--tables`.
    pub library: Library,
    /// The microarchitecture of `--uarch`.
    pub uarch: Option<String>,
    /// ASCII characters only.
    pub ascii: bool,
    /// The config file of `--config`.
    pub config: Option<PathBuf>,
    /// The user's cache folder, which holds calibrations.
    pub cache: Option<PathBuf>,
}

impl Settings {
    /// The core to measure or model: that of `--uarch`, else this machine's.
    ///
    /// # Errors
    /// No table has that name; a table cannot be read.
    pub fn known(&self) -> Result<Known> {
        let uarch = self.uarch.as_deref();
        Known::new(&Machine::detect(), &self.library, uarch, self.cache.as_deref())
    }
}
