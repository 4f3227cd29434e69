//! What is built and run, and how that ends.

use crate::topdown::{LiveAsk, Update, live};
use pmu::machine::Machine;
use report::documents::Exit;
use std::path::Path;
use tma::tables::Library;
use tma::{Error, Result};

/// What is built and run.
#[derive(Debug)]
pub struct ApplyAsk<'a> {
    /// This machine.
    pub machine: &'a Machine,
    /// Its tables.
    pub library: &'a Library,
    /// The command that builds the program.
    pub build: LiveAsk,
    /// The program.
    pub run: LiveAsk,
    /// Runs of each with and without a prefetch.
    pub rounds: u32,
    /// Distances to try in place of those around the advised one.
    pub distances: Vec<u64>,
    /// Most places that are tried.
    pub most: usize,
    /// The file that standard output goes to meanwhile, which is compared.
    pub output: &'a Path,
    /// Only a patch is wanted.
    pub restores: bool,
}

/// Why a step did not end.
#[derive(Debug)]
pub(super) enum Stop {
    Failed(Error),
    Signal(i32),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Builds the program; the signal that ended the build.
///
/// # Errors
/// The build fails.
pub fn build(ask: &ApplyAsk<'_>) -> Result<Option<i32>> {
    let outcome = live(ask.machine, ask.library, &ask.build, &mut |_: Update| {})?;
    let how = match (outcome.interrupted, outcome.report.exit) {
        (Some(signal), _) => return Ok(Some(signal)),
        (None, None | Some(Exit::Status(0))) => return Ok(None),
        (None, Some(Exit::Status(status))) => format!("its exit status is {status}"),
        (None, Some(Exit::Signal(signal))) => format!("signal {signal} killed it"),
    };
    let hint = format!("run it here until it succeeds: `{}`", tma::shell::quoted(&ask.build.typed));
    Err(Error::failed("the build failed").because(how).hint(hint))
}
