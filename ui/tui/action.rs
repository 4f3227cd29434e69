//! Actions on the state, and their effects.

use super::state::{Counts, Failure, Loads, SampleFilter, Searchable, SourceLines};
use crate::keymap::{Command, Edit};
use engine::estimate::Step;
use profile::hot::{Annotated, Calls, Summary, Thread};
use report::documents::Report;
use report::documents::diff::Diff;
use report::documents::estimate::Estimate;
use report::documents::report_file::Explanations;
use std::path::PathBuf;
use std::sync::Arc;

/// Everything that can happen.
#[derive(Debug, Clone)]
pub enum Action {
    /// A key with a meaning.
    Command(Command),
    /// A key while a prompt is open.
    Edit(Edit),
    /// The wheel, down or up by these rows.
    Wheel(isize),
    /// A click at this row.
    Click(u16),
    /// The terminal has this many columns and rows.
    Resize(u16, u16),
    /// A result from the background.
    Background(BackgroundResult),
}

/// Results of background threads.
#[derive(Debug, Clone)]
pub enum BackgroundResult {
    /// Explanations of the nodes by the tables.
    Explained(Arc<Explanations>),
    /// The report of one interval of a live measurement.
    Interval(Box<Report>),
    /// The report of a file, or of a whole measurement.
    Report(Box<Report>),
    /// No report, for this reason.
    NoReport(String),
    /// A live measurement has started.
    Measuring,
    /// The functions of a recording.
    Functions(Box<Searchable<Summary>>),
    /// Its threads with samples.
    Threads(Vec<Thread>),
    /// No functions, for this reason.
    NoFunctions(String),
    /// Counts from the branch stacks of its events, by number of the event.
    Counts(Vec<(usize, Counts)>),
    /// The samples of loads of its events, by number of the event.
    Loads(Vec<(usize, Loads)>),
    /// The code of the function with this index, and its source lines.
    Annotated(usize, Box<Annotated>, SourceLines),
    /// The code of the function with this index is not available, for this reason.
    NotAnnotated(usize, String),
    /// Progress of the block measurement with this id: seconds, and passes.
    Progress(u64, f64, u32),
    /// The block measurement with this id has ended.
    Measured(u64, Result<Box<bench::Measurement>, Failure>),
    /// The measured command has written this.
    Output(String),
    /// There is no PMU, so samples come first; whether the command can be estimated when it has ended.
    NotCounted(bool),
    /// Top-down can be estimated; what that costs.
    Offer(String),
    /// A step of the estimate begins.
    Estimating(Step),
    /// The estimate as far as it is known; more follows.
    EstimatedSoFar(Box<Searchable<Estimate>>),
    /// The estimate.
    Estimated(Box<Searchable<Estimate>>),
    /// Evidence of the estimate, as JSON.
    Evidence(String),
    /// No estimate, for this reason.
    NotEstimated(String),
    /// Two measurements compared; or why they are not.
    Compared(Result<Box<Searchable<Diff>>, Failure>),
    /// Callers and callees of the function of this name; or why they are not known.
    Calls(String, Result<Box<Calls>, Failure>),
    /// The file was written; or not, for this reason.
    Saved(PathBuf, Result<(), Failure>),
}

/// Work outside the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Quit,
    /// Give the terminal back and stop, as Ctrl-Z does.
    Suspend,
    /// Draw every cell again.
    Redraw,
    /// Read the code of the function with this index.
    Annotate(usize),
    /// Attribute these samples to functions.
    Profile(SampleFilter),
    /// Find callers and callees of the function of this name.
    Calls(String),
    /// Estimate top-down, in further runs of the command.
    Estimate,
    /// Put a text on the clipboard, through the terminal.
    Copy(String),
    /// Write a new file.
    Save(PathBuf, String),
    /// Measure this machine code as a block; the id comes back with the result.
    Measure(u64, Vec<u8>),
    /// Cancel the block measurement with this id.
    Cancel(u64),
}
