//! One block, measured in isolation.

use super::list::List;
use super::load::Failure;
use crate::tui::look::Tone;
use bench::Measurement;
use engine::block::Notes;
use std::collections::HashMap;

/// Reports that are cached, so that returning to a block does not measure it again.
const CACHED: usize = 64;

/// The state of the measurement.
#[derive(Debug, Clone, Default)]
pub enum Job {
    /// None was started.
    #[default]
    Idle,
    /// Running: seconds, and passes timed.
    Running(f64, u32),
    /// Ended.
    Done(Box<Measurement>),
    /// The user cancelled it.
    Cancelled,
    /// Failed, for this reason.
    Failed(String),
}

/// A line of text in one tone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    pub tone: Tone,
}

/// The block that is shown.
#[derive(Debug, Clone, Default)]
pub struct ShownBlock {
    /// Its name in the breadcrumb: `block 0x1957`.
    pub title: String,
    pub bytes: Vec<u8>,
    /// Its disassembly, shown until there is a report.
    pub code: Vec<String>,
    pub notes: Notes,
}

/// The screen.
#[derive(Debug, Default)]
pub struct BlockScreen {
    pub shown: ShownBlock,
    /// Number of the measurement that is shown.
    pub id: u64,
    pub job: Job,
    /// Whether the report comes with the evidence for each bound and assumption.
    pub verbose: bool,
    /// The lines of the report at the current width.
    pub lines: Vec<Line>,
    pub list: List,
    cached: HashMap<Vec<u8>, Box<Measurement>>,
}

impl BlockScreen {
    /// Shows a block. `Some`: it has to be measured, under this number.
    pub fn open(&mut self, shown: ShownBlock) -> Option<u64> {
        self.shown = shown;
        self.list = List::default();
        self.lines.clear();
        match self.cached.get(&self.shown.bytes) {
            Some(report) => {
                self.job = Job::Done(self.noted(report.clone()));
                None
            }
            None => Some(self.start()),
        }
    }

    /// Starts a measurement of the block, under the number returned.
    pub fn start(&mut self) -> u64 {
        self.id += 1;
        self.job = Job::Running(0.0, 0);
        self.lines.clear();
        self.id
    }

    /// Whether it is being measured.
    pub fn is_running(&self) -> bool {
        matches!(self.job, Job::Running(..))
    }

    /// Ends the measurement with its result.
    pub fn end(&mut self, result: Result<Box<Measurement>, Failure>) {
        self.job = match result {
            Ok(report) => {
                if self.cached.len() >= CACHED {
                    self.cached.clear();
                }
                self.cached.insert(self.shown.bytes.clone(), report.clone());
                Job::Done(self.noted(report))
            }
            Err(why) => Job::Failed(why.to_string()),
        };
    }

    /// A report with the notes of the block that is shown.
    fn noted(&self, mut report: Box<Measurement>) -> Box<Measurement> {
        self.shown.notes.enter(&mut report);
        report
    }

    /// Shows these lines.
    pub fn set_lines(&mut self, lines: Vec<Line>) {
        self.lines = lines;
        self.list.refill(self.lines.len(), None);
    }

    /// The text of a row, for search.
    pub fn row_text(&self, row: usize) -> String {
        self.lines.get(row).map(|l| l.text.clone()).unwrap_or_default()
    }
}
