//! Rows: the cursor among them, those that are visible, and those that a search or filter finds.

use memchr::memmem::Finder;

/// A cursor in rows. It stays in the list and visible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct List {
    /// Number of rows.
    pub rows: usize,
    /// Row of the cursor.
    pub at: usize,
    /// First visible row.
    pub top: usize,
}

impl List {
    /// Moves the cursor by this many rows, up to the ends.
    pub fn move_by(&mut self, rows: isize) {
        self.to(self.at.saturating_add_signed(rows));
    }

    /// Moves the cursor to a row, or to the last one.
    pub fn to(&mut self, row: usize) {
        self.at = row.min(self.rows.saturating_sub(1));
    }

    /// Sets the number of rows; `at` is the new place of the row at the cursor, if it still exists.
    pub fn refill(&mut self, rows: usize, at: Option<usize>) {
        let shift = self.at.saturating_sub(self.top);
        self.rows = rows;
        if let Some(at) = at {
            // The row keeps its place on the screen; the first rows, once shown, stay as long as there is room.
            self.at = at;
            self.top = if self.top == 0 { 0 } else { at.saturating_sub(shift) };
        }
        self.to(self.at);
    }

    /// Scrolls so that the cursor is among the `height` visible rows.
    pub fn settle(&mut self, height: usize) {
        self.to(self.at);
        let height = height.max(1);
        let last_top = self.rows.saturating_sub(height);
        let lowest = (self.at + 1).saturating_sub(height);
        self.top = self.top.clamp(lowest, self.at).min(last_top);
    }

    /// The visible rows, of which there is room for `height`.
    pub fn shown(&self, height: usize) -> std::ops::Range<usize> {
        self.top..self.rows.min(self.top.saturating_add(height))
    }
}

/// The rows of a list that match a filter.
#[derive(Debug)]
pub struct Rows<T> {
    pub shown: Vec<T>,
    pub list: List,
    pub filter: String,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { shown: Vec::new(), list: List::default(), filter: String::new() }
    }
}

/// A text that is looked for; one in lower case ignores case.
pub struct Wanted<'a> {
    is_exact: bool,
    finder: Finder<'a>,
}

impl<'a> Wanted<'a> {
    /// Prepares the search.
    pub fn new(text: &'a str) -> Self {
        let is_exact = text.chars().any(char::is_uppercase);
        Self { is_exact, finder: Finder::new(text) }
    }

    /// Whether a text contains it.
    pub fn is_in(&self, text: &str) -> bool {
        let is_in = |text: &str| self.finder.find(text.as_bytes()).is_some();
        if self.is_exact { is_in(text) } else { is_in(&text.to_lowercase()) }
    }

    /// Whether it matches, where the text in lower case is at hand, as for lists of thousands of rows.
    pub fn is_in_lower(&self, lower: Option<&str>, text: impl Fn() -> String) -> bool {
        match lower {
            _ if self.finder.needle().is_empty() => true,
            Some(lower) if !self.is_exact => self.finder.find(lower.as_bytes()).is_some(),
            _ => self.is_in(&text()),
        }
    }
}

/// Whether `text` contains `wanted`; a lower-case `wanted` ignores case.
pub fn matches(text: &str, wanted: &str) -> bool {
    Wanted::new(wanted).is_in(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_is_always_visible() {
        let mut list = List { rows: 100, at: 0, top: 0 };
        list.to(50);
        list.settle(10);
        assert_eq!(list.shown(10), 41..51);
        list.move_by(-5);
        list.settle(10);
        assert_eq!((list.at, list.top), (45, 41), "it does not scroll before it has to");
        list.refill(3, None);
        list.settle(10);
        assert_eq!((list.at, list.top), (2, 0));
    }

    #[test]
    fn the_hottest_rows_stay_visible_when_the_cursors_row_falls_behind_them() {
        let mut list = List { rows: 20, at: 0, top: 0 };
        list.refill(20, Some(4));
        list.settle(10);
        assert_eq!((list.at, list.shown(10)), (4, 0..10));
        let mut list = List { rows: 20, at: 12, top: 8 };
        list.refill(20, Some(9));
        list.settle(10);
        assert_eq!((list.at, list.top), (9, 5), "a row keeps its place on the screen");
    }
}
