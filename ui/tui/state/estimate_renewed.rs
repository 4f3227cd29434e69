//! A newer document of the same estimate: the cursors stay on what they are on.

use super::estimate::{Estimated, Piece, ProgramRow, program_rows};
use super::estimate_source::Source;
use super::load::Searchable;
use report::documents::estimate::{Estimate, Row};
use std::ops::Range;

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
