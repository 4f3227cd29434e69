//! The blocks of one function and their instructions.

use super::list::List;
use super::load::Load;
use super::loops::{Loop, loops};
use super::matches::matches;
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
