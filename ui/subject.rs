//! Subject of the drill-down.

use bench::Options;
use engine::block::Notes;
use profile::files::SearchPaths;
use report::documents::count::Count;
use std::ffi::OsString;
use std::path::PathBuf;

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
