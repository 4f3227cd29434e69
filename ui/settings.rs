//! The request of a command line: settings, the subject of the drill-down, and what `main` does next.

use crate::{message, terminal};
use bench::Options;
use engine::block::Notes;
use engine::compared::CompareAsk;
use engine::core_model::CoreModel;
use engine::tested;
use engine::topdown::ImportAsk;
use pmu::machine::{Machine, this_cpu};
use profile::files::SearchPaths;
use report::documents::count::Count;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use tma::cpuid::Dump;
use tma::tables::Library;
use tma::{Core, Result};

/// Shows that the self-test runs, which takes a second when a processor is first used.
fn self_test_step(attempt: Option<u32>) {
    if terminal::shows_progress() {
        let line =
            attempt.map(|number| format!("self-test of this core, made once: attempt {number}"));
        message::plain(&format!("\r{}\x1b[K", line.unwrap_or_default()));
    }
}

/// The settings that commands and the drill-down share.
pub struct Settings {
    /// The event tables: built in, and those of `--tables`. They live as long as the program, so that
    /// its end need not free them one by one.
    pub library: &'static Library,
    /// The microarchitecture of `--uarch`.
    pub uarch: Option<String>,
    /// ASCII characters only.
    pub ascii: bool,
    /// The config file of `--config`.
    pub config: Option<PathBuf>,
    /// CPUID by the file of `--cpuid`, instead of this processor's.
    pub cpuid: Option<Vec<Dump>>,
    /// The user's cache folder, which holds calibrations.
    pub cache: Option<PathBuf>,
    /// A kept self-test whose times are taken instead of measuring: that of `--self-test-from`.
    pub self_test: Option<PathBuf>,
    /// Whether the self-test is made again, although its result was kept.
    pub again: bool,
    /// This machine, once it was detected.
    pub machine: OnceLock<Machine>,
    /// The core, once it was described.
    pub core: OnceLock<Arc<Core>>,
}

impl Settings {
    /// This machine, detected once.
    pub fn machine(&self) -> &Machine {
        self.machine.get_or_init(|| match &self.cpuid {
            Some(dumps) => Machine::detect().believing(dumps),
            None => Machine::detect(),
        })
    }

    /// The core to measure or model: that of `--uarch`, else this machine's; described once.
    pub fn core(&self) -> Result<Arc<Core>> {
        if let Some(core) = self.core.get() {
            return Ok(core.clone());
        }
        let core = Arc::new(self.machine().core(self.library, self.uarch.as_deref())?);
        self.place_self_test(&core);
        let core = tested::settled(core, self.library)?;
        Ok(self.core.get_or_init(|| core).clone())
    }

    /// Where the self-test of this core comes from, and is kept.
    fn place_self_test(&self, core: &Core) {
        if let Some(cache) = &self.cache {
            core.self_test.keep_in(cache);
        }
        if self.again {
            core.self_test.make_again();
        }
        core.self_test.watch(self_test_step);
        if let Some(file) = &self.self_test {
            core.self_test.take_from(file);
        }
    }

    /// Request for a comparison of two measurements.
    pub fn comparison(&self, search: SearchPaths) -> CompareAsk {
        let import =
            ImportAsk { uarch: self.uarch.clone(), here: Some(this_cpu), ..ImportAsk::default() };
        CompareAsk { import, search }
    }

    /// The core with its latencies.
    pub fn core_model(&self) -> Result<CoreModel> {
        CoreModel::new(self.core()?, self.cache.as_deref())
    }
}

/// Measured command or process, or a file.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A command, measured and sampled while it runs.
    Command(Vec<OsString>, Samples),
    /// A running process, measured and sampled until it ends.
    Process(i32, Samples),
    /// The whole system, measured.
    System,
    /// Recorded counts, a session, or a perf.data file.
    File(PathBuf, Samples),
    /// Two of them, or two reports, compared.
    Pair(PathBuf, PathBuf, Samples),
    /// One block, measured in isolation.
    Block(Box<BlockRequest>),
}

/// Which samples of a recording, and where its binaries are.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// Only those of these threads, by number or name; empty: all.
    pub threads: Vec<String>,
    /// Where to look for the recorded binaries.
    pub search: SearchPaths,
    /// Exact counts of another run.
    pub counts: Option<Box<Count>>,
}

/// A block to measure.
#[derive(Debug, Clone)]
pub struct BlockRequest {
    /// Its title on the screen.
    pub title: String,
    /// Its machine code.
    pub bytes: Vec<u8>,
    /// How to measure it.
    pub options: Options,
    pub notes: Notes,
}

/// Next step of `main`.
pub enum Next {
    /// End with this status.
    Exit(ExitCode),
    /// Open the drill-down.
    DrillDown(Box<Settings>, Subject),
}
