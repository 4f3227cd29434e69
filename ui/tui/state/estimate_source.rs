//! The source lines of a function of an estimate, with the assembly of each folded below it.

use super::list::List;
use report::documents::estimate::SourceLine;
use std::collections::HashSet;

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceRow {
    /// This line of the function.
    Line(usize),
    /// An instruction of a line.
    Instruction(usize, usize),
}

/// The screen.
#[derive(Debug, Default)]
pub struct Source {
    pub rows: Vec<SourceRow>,
    pub list: List,
    /// Lines whose assembly is shown.
    open: HashSet<usize>,
    /// File and number of each line.
    places: Vec<(String, u32)>,
}

impl Source {
    /// The lines of a function, all folded; the cursor is on the hottest.
    pub fn of(lines: &[SourceLine]) -> Self {
        let mut source = Self::default();
        source.rebuild(lines);
        let hottest = lines.iter().enumerate().max_by(|a, b| a.1.share.total_cmp(&b.1.share));
        source.list.to(hottest.map_or(0, |(i, _)| i));
        source
    }

    /// Newer lines of the same function: the cursor stays on its line, and open ones stay open.
    pub fn renewed(old: Self, lines: &[SourceLine]) -> Self {
        let find = |of: &(String, u32)| {
            lines.iter().position(|line| (&line.file, line.line) == (&of.0, of.1))
        };
        let was_at = match old.rows.get(old.list.at) {
            Some(SourceRow::Line(i) | SourceRow::Instruction(i, _)) => old.places.get(*i),
            None => None,
        };
        let Some(at) = was_at.and_then(find) else { return Self::of(lines) };
        let open = old.open.iter().filter_map(|i| find(old.places.get(*i)?)).collect();
        let mut source = Self { open, list: old.list, ..Self::default() };
        source.rebuild(lines);
        let row = source.rows.iter().position(|row| *row == SourceRow::Line(at));
        source.list.refill(source.rows.len(), row);
        source
    }

    /// Shows or hides the assembly of the line at the cursor.
    pub fn fold(&mut self, lines: &[SourceLine], open: Option<bool>) {
        let Some(&(SourceRow::Line(line) | SourceRow::Instruction(line, _))) =
            self.rows.get(self.list.at)
        else {
            return;
        };
        if open.unwrap_or(!self.open.contains(&line)) {
            self.open.insert(line);
        } else {
            self.open.remove(&line);
        }
        self.rebuild(lines);
    }

    /// Folds or unfolds all lines.
    pub fn fold_all(&mut self, lines: &[SourceLine], open: bool) {
        self.open = if open { (0..lines.len()).collect() } else { HashSet::new() };
        self.rebuild(lines);
    }

    /// Whether the assembly of a line is shown.
    pub fn is_open(&self, line: usize) -> bool {
        self.open.contains(&line)
    }

    fn rebuild(&mut self, lines: &[SourceLine]) {
        let old = self.rows.get(self.list.at).copied();
        self.rows.clear();
        self.places = lines.iter().map(|line| (line.file.clone(), line.line)).collect();
        for (i, line) in lines.iter().enumerate() {
            self.rows.push(SourceRow::Line(i));
            if self.open.contains(&i) {
                self.rows.extend((0..line.code.len()).map(|j| SourceRow::Instruction(i, j)));
            }
        }
        let find = |row: SourceRow| self.rows.iter().position(|one| *one == row);
        let at = old.and_then(|old| {
            let (SourceRow::Line(line) | SourceRow::Instruction(line, _)) = old;
            find(old).or_else(|| find(SourceRow::Line(line)))
        });
        self.list.refill(self.rows.len(), at);
    }
}
