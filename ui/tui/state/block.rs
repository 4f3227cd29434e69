//! One block, measured by itself.

use super::List;
use crate::tui::view::report::{Line, document};
use bench::Measurement;
use std::collections::HashMap;

/// Reports that are kept, so that coming back costs nothing.
const KEPT: usize = 64;

/// How far the measurement is.
#[derive(Debug, Clone, Default)]
pub enum Job {
    /// Nothing was asked for.
    #[default]
    Idle,
    /// It runs: seconds, and passes timed.
    Running(f64, u32),
    /// It is over.
    Done(Box<Measurement>),
    /// It was called off.
    Cancelled,
    /// It could not be made, for this reason.
    Failed(String),
}

/// The screen.
#[derive(Debug, Default)]
pub struct BlockScreen {
    /// What people call it: `block 0x1957`.
    pub title: String,
    pub bytes: Vec<u8>,
    /// Disassembly, where it is known before the measurement.
    pub code: Vec<String>,
    /// Number of the measurement that is shown.
    pub id: u64,
    pub job: Job,
    /// The report as lines of the width at hand.
    pub lines: Vec<Line>,
    pub list: List,
    kept: HashMap<Vec<u8>, Box<Measurement>>,
}

impl BlockScreen {
    /// Shows a block. `Some`: it has to be measured, under this number.
    pub fn open(&mut self, title: String, bytes: Vec<u8>, code: Vec<String>) -> Option<u64> {
        self.title = title;
        self.bytes = bytes;
        self.code = code;
        self.list = List::default();
        self.lines.clear();
        match self.kept.get(&self.bytes) {
            Some(report) => {
                self.job = Job::Done(report.clone());
                None
            }
            None => Some(self.start()),
        }
    }

    /// A new measurement of the same block, under this number.
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

    /// The measurement is over.
    pub fn end(&mut self, result: Result<Box<Measurement>, String>) {
        self.job = match result {
            Ok(report) => {
                if self.kept.len() >= KEPT {
                    self.kept.clear();
                }
                self.kept.insert(self.bytes.clone(), report.clone());
                Job::Done(report)
            }
            Err(why) => Job::Failed(why),
        };
    }

    /// Lines for a screen of `width` columns.
    pub fn wrap(&mut self, width: usize) {
        self.lines = document(self, width);
        self.list.refill(self.lines.len(), None);
    }

    /// The text of a row, for search.
    pub fn row_text(&self, row: usize) -> String {
        self.lines.get(row).map(|l| l.text.clone()).unwrap_or_default()
    }
}
