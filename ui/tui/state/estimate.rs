//! An estimated top-down: the document, and the cursors of its screens, which stay on what they are on when a newer
//! document of the same estimate arrives.

use super::blocks::TextLine;
use super::estimate_source::{Source, SourceRow};
use super::list::{List, Rows, Wanted, matches};
use super::load::{HasFunctions, Searchable, Texts};
use crate::keymap::Screen;
use engine::estimate::Step;
use report::documents::estimate::{Dominant, Estimate, Node, Row};
use std::ops::Range;
use std::sync::Arc;

/// State of the estimate.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum EstimateJob {
    /// Impossible: no command to run again, or its tree was counted.
    #[default]
    None,
    /// Possible once the command has ended; whether it is wanted.
    Later(bool),
    /// Possible, at this cost.
    Offered(String),
    /// Running; the last step that began.
    Running(Option<Step>),
    /// Done: in the document.
    Done,
    /// Failed, for this reason.
    Failed(String),
}

/// A row of the program's screen.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgramRow {
    /// A node of the tree.
    Node(Node),
    /// Time that is not divided, such as the kernel's: this function of the document.
    Other(usize),
}

/// A row of a function's screen, by its number in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    Loop(usize),
    Block(usize),
}

/// The screens.
#[derive(Debug, Default)]
pub struct Estimated {
    pub job: EstimateJob,
    pub document: Option<Arc<Estimate>>,
    /// Its evidence, as JSON.
    pub evidence: Option<String>,
    pub program: Rows<ProgramRow>,
    pub functions: Rows<usize>,
    /// The texts of the document's functions, in lower case.
    lower: Texts,
    /// Number of the function whose loops and blocks are shown.
    pub function: Option<usize>,
    pub code: Rows<Piece>,
    /// Its source lines.
    pub source: Source,
    /// The loop or block that is shown.
    pub piece: Option<Piece>,
    /// Its lines at the current width.
    pub lines: Vec<TextLine>,
    pub list: List,
}

impl Estimated {
    /// Shows a document; the cursors are at the bottleneck and at the hottest rows.
    pub fn fill(&mut self, of: Searchable<Estimate>) {
        let program = program_rows(&of.document);
        let (job, evidence) = (std::mem::take(&mut self.job), self.evidence.take());
        *self = Self { job, evidence, ..Self::default() };
        self.set(of);
        self.program.list.refill(program.len(), None);
        self.program.shown = program;
        let at = self.bottleneck().unwrap_or(0);
        self.program.list.to(at);
        self.rebuild_functions();
    }

    /// Takes a document, whatever is shown.
    pub(super) fn set(&mut self, of: Searchable<Estimate>) {
        self.lower = of.lower;
        self.document = Some(Arc::new(of.document));
    }

    /// The row of the program's bottleneck; of an undecided one, the largest part of what may be.
    pub fn bottleneck(&self) -> Option<usize> {
        let program = &self.document.as_ref()?.program;
        let most = program.bottleneck.0.map_or_else(|| program.leading().name(), Dominant::name);
        let is_it = |of: &ProgramRow| matches!(of, ProgramRow::Node(node) if node.id == most);
        self.program.shown.iter().position(is_it)
    }

    /// The functions that match the filter.
    pub fn rebuild_functions(&mut self) {
        let Some(document) = &self.document else { return };
        let old = self.functions.shown.get(self.functions.list.at).copied();
        let (rows, lower) = (&mut self.functions, &self.lower);
        rows.shown.clear();
        let wanted = Wanted::new(&rows.filter);
        let all = document.functions.iter().enumerate();
        let fitting = all.filter(|(i, f)| wanted.is_in_lower(lower.get(*i), || text(f)));
        rows.shown.extend(fitting.map(|(i, _)| i));
        let at = old.and_then(|old| rows.shown.iter().position(|i| *i == old));
        rows.list.refill(rows.shown.len(), at);
    }

    /// Shows the loops and blocks of a function.
    pub fn open_function(&mut self, function: usize) {
        if self.function != Some(function) {
            self.function = Some(function);
            self.code = Rows::default();
            self.rebuild_code();
            self.source = Source::of(self.opened().map_or(&[], |row| &row.lines));
        }
    }

    /// Lists the loops and blocks that match the filter; a block that is a whole loop is that loop.
    pub fn rebuild_code(&mut self) {
        let Some((document, of)) = self.document.as_ref().zip(self.opened()) else { return };
        let Some(range) = of.range() else { return };
        let fits = |row: &Row| {
            let Some(start) = row.start.filter(|start| range.contains(&start.0)) else {
                return false;
            };
            let text = format!("{start} {}", row.bottleneck.name());
            row.module == of.module && matches(&text, &self.code.filter)
        };
        let loops = document.loops.iter().enumerate().filter(|(_, row)| fits(row));
        let blocks = document.blocks_outside_of_loops().filter(|(_, row)| fits(row));
        let mut shown: Vec<(Piece, f64)> = loops
            .map(|(i, row)| (Piece::Loop(i), row.share))
            .chain(blocks.map(|(i, row)| (Piece::Block(i), row.share)))
            .collect();
        shown.sort_by(|a, b| b.1.total_cmp(&a.1));
        self.code.shown = shown.into_iter().map(|(piece, _)| piece).collect();
        self.code.list.refill(self.code.shown.len(), None);
    }

    /// The function whose code is shown.
    pub fn opened(&self) -> Option<&Row> {
        self.document.as_ref()?.functions.get(self.function?)
    }

    /// The function in a row.
    pub fn function_at(&self, row: usize) -> Option<&Row> {
        self.document.as_ref()?.functions.get(*self.functions.shown.get(row)?)
    }

    /// A loop or block.
    pub fn piece(&self, piece: Piece) -> Option<&Row> {
        let document = self.document.as_ref()?;
        match piece {
            Piece::Loop(i) => document.loops.get(i),
            Piece::Block(i) => document.blocks.get(i),
        }
    }

    /// The loop or block in a row.
    pub fn piece_at(&self, row: usize) -> Option<(Piece, &Row)> {
        let piece = *self.code.shown.get(row)?;
        Some((piece, self.piece(piece)?))
    }

    /// The loop or block that is shown.
    pub fn shown(&self) -> Option<&Row> {
        self.piece(self.piece?)
    }

    /// The text of a function's row in lower case.
    pub fn lower(&self, row: usize) -> Option<&str> {
        self.lower.get(*self.functions.shown.get(row)?)
    }

    /// The text of a row, for search.
    pub fn row_text(&self, screen: Screen, row: usize) -> String {
        match screen {
            Screen::Estimate => match self.program.shown.get(row) {
                Some(ProgramRow::Node(node)) => node.label.to_owned(),
                Some(ProgramRow::Other(i)) => {
                    let other = self.document.as_ref().and_then(|d| d.functions.get(*i));
                    other.map(|row| row.name.clone()).unwrap_or_default()
                }
                None => String::new(),
            },
            Screen::EstimatedFunctions => self.function_at(row).map(text).unwrap_or_default(),
            Screen::EstimatedCode => {
                self.piece_at(row).map(|(_, row)| text(row)).unwrap_or_default()
            }
            Screen::EstimatedSource => {
                let of = self.opened().zip(self.source.rows.get(row));
                let text = of.and_then(|(function, of)| match *of {
                    SourceRow::Line(i) => function.lines.get(i)?.text.clone(),
                    SourceRow::Instruction(i, j) => {
                        Some(function.lines.get(i)?.code.get(j)?.text.clone())
                    }
                });
                text.unwrap_or_default()
            }
            _ => self.lines.get(row).map(|line| line.text.clone()).unwrap_or_default(),
        }
    }

    /// Shows these lines of a loop or block.
    pub fn set_lines(&mut self, lines: Vec<TextLine>) {
        self.lines = lines;
        self.list.refill(self.lines.len(), None);
    }
}

impl HasFunctions for Estimate {
    fn texts(&self) -> impl Iterator<Item = String> {
        self.functions.iter().map(text)
    }
}

/// Text of a row for search and filter.
fn text(row: &Row) -> String {
    let start = row.start.map_or(String::new(), |start| start.to_string());
    format!("{} {start} {}", row.name, row.bottleneck.name())
}

/// The tree of the program, and the time that is not divided.
pub(super) fn program_rows(document: &Estimate) -> Vec<ProgramRow> {
    let nodes = document.program.parts.tree().into_iter().map(ProgramRow::Node);
    let others = document.functions.iter().enumerate().filter(|(_, f)| f.start.is_none());
    nodes.chain(others.map(|(i, _)| ProgramRow::Other(i))).collect()
}

/// Identity of a row, whatever its number.
type Place = (String, Option<Range<u64>>, String);

fn place(row: &Row) -> Place {
    (row.module.clone(), row.range(), row.name.clone())
}

/// Number of a row in newer ones.
fn find(rows: &[Row], wanted: &Place) -> Option<usize> {
    rows.iter().position(|row| place(row) == *wanted)
}

impl Estimated {
    /// Shows a newer document.
    pub fn renew(&mut self, newer: Searchable<Estimate>) {
        let program = self.program.shown.get(self.program.list.at).map(|row| self.name(row));
        let follows = self.bottleneck() == Some(self.program.list.at);
        let function = self.function_at(self.functions.list.at).map(place);
        let opened = self.opened().map(place);
        let at = self.piece_at(self.code.list.at).map(|(piece, row)| (piece, place(row)));
        let shown = self.piece.zip(self.shown().map(place));
        self.set(newer);
        self.renew_program(program.filter(|_| !follows));
        self.renew_functions(function.as_ref());
        self.function = opened.and_then(|wanted| self.function_of(&wanted));
        self.code.shown.clear();
        self.rebuild_code();
        if let Some(row) = at.and_then(|(piece, place)| self.row_of(piece, &place)) {
            self.code.list.refill(self.code.shown.len(), Some(row));
        }
        self.piece = shown.and_then(|(piece, wanted)| self.piece_of(piece, &wanted));
        let source = std::mem::take(&mut self.source);
        let lines = self.opened().map_or(&[][..], |row| &row.lines);
        self.source = Source::renewed(source, lines);
    }

    /// The identity of a row of the program's screen.
    fn name(&self, row: &ProgramRow) -> String {
        match row {
            ProgramRow::Node(node) => node.id.to_owned(),
            ProgramRow::Other(i) => {
                let other = self.document.as_ref().and_then(|d| d.functions.get(*i));
                other.map(|row| row.name.clone()).unwrap_or_default()
            }
        }
    }

    /// The program's rows; the cursor is on the row of this name, else on the bottleneck.
    fn renew_program(&mut self, name: Option<String>) {
        let Some(document) = &self.document else { return };
        self.program.shown = program_rows(document);
        let is_it = |row: &ProgramRow| name.as_ref().is_some_and(|name| self.name(row) == *name);
        let at = self.program.shown.iter().position(is_it).or_else(|| self.bottleneck());
        self.program.list.refill(self.program.shown.len(), at);
    }

    fn renew_functions(&mut self, at: Option<&Place>) {
        self.functions.shown.clear();
        self.rebuild_functions();
        let row = at.and_then(|wanted| self.function_of(wanted));
        let row = row.and_then(|i| self.functions.shown.iter().position(|one| *one == i));
        self.functions.list.refill(self.functions.shown.len(), row);
    }

    fn function_of(&self, wanted: &Place) -> Option<usize> {
        find(&self.document.as_ref()?.functions, wanted)
    }

    fn piece_of(&self, piece: Piece, wanted: &Place) -> Option<Piece> {
        let document = self.document.as_ref()?;
        match piece {
            Piece::Loop(_) => find(&document.loops, wanted).map(Piece::Loop),
            Piece::Block(_) => find(&document.blocks, wanted).map(Piece::Block),
        }
    }

    fn row_of(&self, piece: Piece, wanted: &Place) -> Option<usize> {
        let now = self.piece_of(piece, wanted)?;
        self.code.shown.iter().position(|one| *one == now)
    }
}
