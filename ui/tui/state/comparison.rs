//! Two measurements compared: the document, and the cursors of its two screens.

use super::list::{Rows, Wanted};
use super::load::{HasFunctions, Load, Searchable, Texts};
use crate::keymap::Screen;
use report::documents::diff::Diff;
use report::documents::diff::row::CodeRow;
use std::sync::Arc;

/// A row: which one of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparedRow {
    Program,
    Function(usize),
    Loop(usize),
    Block(usize),
}

/// The screens.
#[derive(Debug, Default)]
pub struct Comparison {
    pub data: Load<Arc<Diff>>,
    /// The texts of the functions that a filter matches, in lower case.
    lower: Texts,
    pub functions: Rows<ComparedRow>,
    /// Number of the function whose loops and blocks are shown; all, of the program.
    pub function: Option<usize>,
    pub code: Rows<ComparedRow>,
}

impl Comparison {
    /// Shows a comparison.
    pub fn fill(&mut self, of: Searchable<Diff>) {
        let data = Load::Ready(Arc::new(of.document));
        *self = Self { data, lower: of.lower, ..Self::default() };
        self.rebuild(Screen::Comparison);
    }

    /// The rows of a screen that match its filter.
    pub fn rebuild(&mut self, screen: Screen) {
        let Some(code) = self.data.ready().and_then(|diff| diff.code.as_ref()) else { return };
        let is_code = screen == Screen::ComparedCode;
        let all: Vec<ComparedRow> = if is_code {
            let own = |row: &CodeRow| self.function.is_none() || row.function == self.function;
            let loops = (0..code.loops.len()).filter(|i| own(&code.loops[*i]));
            let blocks = (0..code.blocks.len()).filter(|i| own(&code.blocks[*i]));
            let mut all: Vec<_> =
                loops.map(ComparedRow::Loop).chain(blocks.map(ComparedRow::Block)).collect();
            let change = |row: &ComparedRow| self.of(*row).map_or(0.0, CodeRow::change);
            all.sort_by(|a, b| change(b).total_cmp(&change(a)));
            all
        } else {
            let program = code.program.iter().map(|_| ComparedRow::Program);
            program.chain((0..code.functions.len()).map(ComparedRow::Function)).collect()
        };
        let rows = if is_code { &self.code } else { &self.functions };
        let old = rows.shown.get(rows.list.at).copied();
        let wanted = Wanted::new(&rows.filter);
        let fits = |row: &ComparedRow| wanted.is_in_lower(self.lower(*row), || self.text(*row));
        let shown: Vec<ComparedRow> = all.into_iter().filter(fits).collect();
        let at = old.and_then(|old| shown.iter().position(|row| *row == old));
        let rows = if is_code { &mut self.code } else { &mut self.functions };
        rows.list.refill(shown.len(), at);
        rows.shown = shown;
    }

    /// A row of the document.
    pub fn of(&self, row: ComparedRow) -> Option<&CodeRow> {
        let code = self.data.ready()?.code.as_ref()?;
        match row {
            ComparedRow::Program => code.program.as_ref(),
            ComparedRow::Function(i) => code.functions.get(i),
            ComparedRow::Loop(i) => code.loops.get(i),
            ComparedRow::Block(i) => code.blocks.get(i),
        }
    }

    /// The rows of a screen.
    pub fn rows(&self, screen: Screen) -> &Rows<ComparedRow> {
        if screen == Screen::ComparedCode { &self.code } else { &self.functions }
    }

    /// The rows of a screen.
    pub fn rows_mut(&mut self, screen: Screen) -> &mut Rows<ComparedRow> {
        if screen == Screen::ComparedCode { &mut self.code } else { &mut self.functions }
    }

    /// The row of a screen, with its place in the document.
    pub fn row(&self, screen: Screen, row: usize) -> Option<(ComparedRow, &CodeRow)> {
        let which = *self.rows(screen).shown.get(row)?;
        Some((which, self.of(which)?))
    }

    /// Shows the loops and blocks of a row.
    pub fn open(&mut self, row: ComparedRow) {
        let function = if let ComparedRow::Function(i) = row { Some(i) } else { None };
        if self.function != function || self.code.shown.is_empty() {
            self.function = function;
            self.code = Rows::default();
            self.rebuild(Screen::ComparedCode);
        }
    }

    /// The text of a row in lower case; of functions only.
    pub fn lower(&self, row: ComparedRow) -> Option<&str> {
        match row {
            ComparedRow::Function(i) => self.lower.get(i),
            _ => None,
        }
    }

    /// The text of a row, for search and filter.
    pub fn text(&self, row: ComparedRow) -> String {
        self.of(row).map_or_else(String::new, text)
    }
}

impl HasFunctions for Diff {
    fn texts(&self) -> impl Iterator<Item = String> {
        self.code.iter().flat_map(|code| &code.functions).map(text)
    }
}

fn text(row: &CodeRow) -> String {
    let start = report::format::joined(row.start.iter().flatten());
    format!("{} {start}", row.time.id)
}
