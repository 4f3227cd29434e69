//! A cursor in a list of rows, and the rows that are visible.

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
