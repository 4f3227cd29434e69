//! A cursor in a list of rows and the part of it that is on the screen.

/// The cursor stays on the screen, and in the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct List {
    /// Rows there are.
    pub rows: usize,
    /// The row that the cursor is on.
    pub at: usize,
    /// The first row on the screen.
    pub top: usize,
}

impl List {
    /// Moves the cursor by so many rows, no further than the ends.
    pub fn move_by(&mut self, rows: isize) {
        self.to(self.at.saturating_add_signed(rows));
    }

    /// Puts the cursor on a row, or the last one.
    pub fn to(&mut self, row: usize) {
        self.at = row.min(self.rows.saturating_sub(1));
    }

    /// There are so many rows now, and the cursor's own has gone to `at`, if it is still there.
    pub fn refill(&mut self, rows: usize, at: Option<usize>) {
        let shift = self.at.saturating_sub(self.top);
        self.rows = rows;
        if let Some(at) = at {
            // The row stays where it is on the screen while others come and go around it.
            self.at = at;
            self.top = at.saturating_sub(shift);
        }
        self.to(self.at);
    }

    /// Brings the cursor into a screen of `height` rows.
    pub fn settle(&mut self, height: usize) {
        self.to(self.at);
        let height = height.max(1);
        let last_top = self.rows.saturating_sub(height);
        let lowest = (self.at + 1).saturating_sub(height);
        self.top = self.top.clamp(lowest, self.at).min(last_top);
    }

    /// The rows on a screen of `height` rows.
    pub fn shown(&self, height: usize) -> std::ops::Range<usize> {
        self.top..self.rows.min(self.top.saturating_add(height))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_is_always_in_view() {
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
}
