//! What can happen to the state, and what the state asks of the world in return.

use engine::documents::Report;
use profile::hot::{Annotated, Summary, Thread};
use std::path::PathBuf;

use super::state::{Explanations, Texts, Which};

/// What a key means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Command {
    Quit,
    Help,
    Drill,
    Back,
    Up,
    Down,
    PageUp,
    PageDown,
    HalfUp,
    HalfDown,
    Top,
    Bottom,
    Search,
    NextMatch,
    PreviousMatch,
    Filter,
    Sort,
    Invert,
    Toggle,
    Expand,
    Collapse,
    ExpandAll,
    CollapseAll,
    Hottest,
    NextHot,
    PreviousHot,
    NextSymbol,
    PreviousSymbol,
    Source,
    Offsets,
    Samples,
    Details,
    DetailsDown,
    DetailsUp,
    NextPart,
    Module,
    Thread,
    NextEvent,
    Freeze,
    Again,
    Cancel,
    Copy,
    Export,
    Suspend,
    Redraw,
}

/// A keystroke in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    Insert(char),
    Erase,
    EraseWord,
    EraseAll,
    Accept,
    Abort,
}

/// Everything that can happen.
#[derive(Debug, Clone)]
pub enum Action {
    /// A key with a meaning.
    Command(Command),
    /// A key while a prompt is open.
    Edit(Edit),
    /// The terminal has this many columns and rows.
    Resize(u16, u16),
    /// What the tables say of the nodes.
    Explained(Explanations),
    /// The report of one interval of a live measurement.
    Interval(Box<Report>),
    /// The report of a file, or of a whole measurement.
    Report(Box<Report>),
    /// There is no report, for this reason.
    NoReport(String),
    /// A live measurement runs.
    Measuring,
    /// The functions of a recording.
    Functions(Box<Summary>),
    /// Its threads with samples.
    Threads(Vec<Thread>),
    /// There are none, for this reason.
    NoFunctions(String),
    /// The code of the function at this index, and its lines of source.
    Annotated(usize, Box<Annotated>, Texts),
    /// The profile failed at the function at this index.
    NotAnnotated(usize, String),
    /// How far the block measurement is: its id, seconds, passes.
    Progress(u64, f64, u32),
    /// The block measurement with this id has ended.
    Measured(u64, Result<Box<bench::Measurement>, String>),
    /// The file was written; or not, for this reason.
    Saved(PathBuf, Result<(), String>),
}

/// What the world is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Quit,
    /// Give the terminal back and stop, as Ctrl-Z does.
    Suspend,
    /// Draw every cell anew.
    Redraw,
    /// Read the code of the function at this index.
    Annotate(usize),
    /// Count these samples instead.
    Profile(Which),
    /// Put a text on the clipboard, through the terminal.
    Copy(String),
    /// Write a new file.
    Save(PathBuf, String),
    /// Measure these bytes as a block; the id comes back with the result.
    Measure(u64, Vec<u8>),
    /// The block measurement with this id is not wanted any more.
    Cancel(u64),
}
