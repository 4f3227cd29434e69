//! The blocks of a function, their instructions and loops; one block, measured in isolation.

use super::list::{List, matches};
use super::load::{Failure, Load};
use crate::tui::look::Tone;
use bench::Measurement;
use engine::block::Notes;
use profile::hot::{Annotated, AnnotatedBlock, AnnotatedLine};
use std::collections::{HashMap, HashSet};

/// A row: the head of a block, a source line, or an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockRow {
    /// The head of this block.
    Block(usize),
    /// The source line of this block's instruction.
    Source(usize, usize),
    /// This block's instruction.
    Line(usize, usize),
}

/// The screen.
#[derive(Debug, Default)]
pub struct Blocks {
    /// Index of the function.
    pub index: Option<usize>,
    pub data: Load<Annotated>,
    /// Starts of the blocks whose instructions are hidden.
    pub closed: HashSet<u64>,
    pub rows: Vec<BlockRow>,
    pub list: List,
    pub filter: String,
    /// Source lines between the instructions.
    pub source: bool,
    /// Offsets in the function instead of addresses.
    pub offsets: bool,
    /// Samples instead of shares.
    pub samples: bool,
    /// The source lines that could be read.
    pub texts: SourceLines,
    /// The loops to draw.
    pub loops: Vec<Loop>,
}

/// Rows above the hottest instruction when a function is opened.
const ABOVE: usize = 8;

/// Source lines by file and number.
pub type SourceLines = HashMap<(String, u32), String>;

impl Blocks {
    /// Begins with another function, whose code is to arrive; the choice of columns stays.
    pub fn open(&mut self, index: usize) {
        let (source, offsets, samples) = (self.source, self.offsets, self.samples);
        *self = Self { index: Some(index), source, offsets, samples, ..Self::default() };
    }

    /// All blocks.
    pub fn all(&self) -> &[AnnotatedBlock] {
        self.data.ready().map_or(&[], |a| &a.blocks)
    }

    /// The block of a row.
    pub fn block(&self, row: usize) -> Option<&AnnotatedBlock> {
        self.all().get(block_of(*self.rows.get(row)?))
    }

    /// The instruction of a row.
    pub fn line(&self, row: usize) -> Option<&AnnotatedLine> {
        match *self.rows.get(row)? {
            BlockRow::Line(b, i) => self.all().get(b)?.lines.get(i),
            _ => None,
        }
    }

    /// Shows the code; the cursor goes to its hottest instruction.
    pub fn fill(&mut self, annotated: Annotated, texts: SourceLines) {
        let is_first = self.data.ready().is_none();
        self.texts = texts;
        self.loops = loops(&annotated.blocks);
        self.data = Load::Ready(annotated);
        self.rebuild();
        // While the program runs, the same code comes again with more samples.
        if is_first && let Some(row) = self.hottest() {
            self.list.to(row);
            self.list.top = row.saturating_sub(ABOVE);
        }
    }

    /// Filters and folds the rows; the cursor stays on its instruction, or goes to its block.
    pub fn rebuild(&mut self) {
        let old = self.rows.get(self.list.at).copied();
        let mut rows = Vec::new();
        for (b, block) in self.all().iter().enumerate() {
            let before = rows.len();
            rows.push(BlockRow::Block(b));
            if !self.closed.contains(&block.block.start) {
                self.lines(b, block, &mut rows);
            }
            if rows.len() == before + 1 && !self.filter.is_empty() {
                // No instruction of it matches.
                rows.pop();
            }
        }
        let find = |wanted: BlockRow| rows.iter().position(|r| *r == wanted);
        let at = old.and_then(|old| find(old).or_else(|| find(BlockRow::Block(block_of(old)))));
        self.list.refill(rows.len(), at);
        self.rows = rows;
    }

    fn lines(&self, b: usize, block: &AnnotatedBlock, rows: &mut Vec<BlockRow>) {
        let mut last = None;
        for (i, line) in block.lines.iter().enumerate() {
            let source = line.source.as_ref();
            let text = || format!("{} {}", line.text, source.map_or("", |s| &s.0));
            if !self.filter.is_empty() && !matches(&text(), &self.filter) {
                continue;
            }
            if self.source && source.is_some() && source != last {
                rows.push(BlockRow::Source(b, i));
                last = source;
            }
            rows.push(BlockRow::Line(b, i));
        }
    }

    /// Index of the block of a row.
    pub fn block_index(&self, row: usize) -> Option<usize> {
        self.rows.get(row).map(|r| block_of(*r))
    }

    /// Expands or collapses the block at the cursor.
    pub fn fold(&mut self, open: Option<bool>) {
        let Some(start) = self.block(self.list.at).map(|b| b.block.start) else { return };
        if open.unwrap_or(self.closed.contains(&start)) {
            self.closed.remove(&start);
        } else {
            self.closed.insert(start);
        }
        self.rebuild();
    }

    /// Expands or collapses all blocks.
    pub fn fold_all(&mut self, open: bool) {
        self.closed.clear();
        if !open {
            self.closed = self.all().iter().map(|b| b.block.start).collect();
        }
        self.rebuild();
    }

    /// The row with the most samples.
    pub fn hottest(&self) -> Option<usize> {
        let hot = self
            .samples_by_row()
            .into_iter()
            .max_by_key(|(samples, row)| (*samples, usize::MAX - row));
        hot.filter(|(samples, _)| *samples > 0).map(|(_, row)| row)
    }

    /// The row of the next instruction by samples: with fewer than at the cursor, or with more.
    pub fn next_hot(&self, fewer: bool) -> Option<usize> {
        let mut all = self.samples_by_row();
        all.retain(|(samples, _)| *samples > 0);
        all.sort_by_key(|(samples, row)| (std::cmp::Reverse(*samples), *row));
        let now = all.iter().position(|(_, row)| *row == self.list.at);
        let next = match (now, fewer) {
            (None, _) => 0,
            (Some(i), true) => i + 1,
            (Some(i), false) => i.checked_sub(1)?,
        };
        all.get(next).map(|(_, row)| *row)
    }

    fn samples_by_row(&self) -> Vec<(u64, usize)> {
        (0..self.rows.len()).filter_map(|row| Some((self.line(row)?.samples, row))).collect()
    }

    /// The text of a row, for search.
    pub fn row_text(&self, row: usize) -> String {
        match self.rows.get(row) {
            Some(BlockRow::Block(_)) => {
                self.block(row).map(|b| format!("{:#x}", b.block.start)).unwrap_or_default()
            }
            Some(&BlockRow::Source(b, i)) => {
                let source = self.all().get(b).and_then(|b| b.lines.get(i)?.source.clone());
                source.map(|(file, line)| format!("{file}:{line}")).unwrap_or_default()
            }
            _ => self.line(row).map(|l| format!("{:#x} {}", l.address, l.text)).unwrap_or_default(),
        }
    }
}

fn block_of(row: BlockRow) -> usize {
    match row {
        BlockRow::Block(b) | BlockRow::Source(b, _) | BlockRow::Line(b, _) => b,
    }
}

/// A loop, drawn from its head to the block that jumps back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loop {
    /// Indices of the first and last block that it spans.
    pub from: usize,
    pub to: usize,
    /// Whether the head is the first of them: a compiler may put it last.
    pub head_first: bool,
    /// Column that it is drawn in; 0 is the outermost.
    pub column: usize,
}

/// Maximum columns; loops nested deeper are not drawn.
const MAX_COLUMNS: usize = 6;

/// The loops of `blocks`, by their back edges; overlapping ones in different columns.
pub fn loops(blocks: &[AnnotatedBlock]) -> Vec<Loop> {
    let index: HashMap<u64, usize> =
        blocks.iter().enumerate().map(|(i, b)| (b.block.start, i)).collect();
    let mut all: Vec<Loop> = Vec::new();
    for (i, block) in blocks.iter().enumerate() {
        if let Some(&head) = block.back_to.and_then(|start| index.get(&start)) {
            let (from, to) = (head.min(i), head.max(i));
            all.push(Loop { from, to, head_first: head <= i, column: 0 });
        }
    }
    // The widest loops get the outermost columns.
    all.sort_by_key(|l| (std::cmp::Reverse(l.to - l.from), l.from));
    for i in 0..all.len() {
        let (before, rest) = all.split_at_mut(i);
        let one = &mut rest[0];
        let overlaps = |o: &&Loop| o.from <= one.to && one.from <= o.to;
        let taken: HashSet<usize> = before.iter().filter(overlaps).map(|o| o.column).collect();
        one.column = (0..=before.len()).find(|c| !taken.contains(c)).unwrap_or(0);
    }
    all.retain(|l| l.column < MAX_COLUMNS);
    all
}

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
pub struct TextLine {
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
    pub lines: Vec<TextLine>,
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
    pub fn set_lines(&mut self, lines: Vec<TextLine>) {
        self.lines = lines;
        self.list.refill(self.lines.len(), None);
    }

    /// The text of a row, for search.
    pub fn row_text(&self, row: usize) -> String {
        self.lines.get(row).map(|l| l.text.clone()).unwrap_or_default()
    }
}
