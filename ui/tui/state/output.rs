//! The last lines that the measured command has written.

use std::collections::VecDeque;

/// Lines that are remembered, and letters of one.
const LINES: usize = 200;
const LETTERS: usize = 2000;

/// The pane.
#[derive(Debug, Default)]
pub struct Output {
    /// Whole lines, oldest first; the last one may still grow.
    lines: VecDeque<String>,
    /// The user hid the pane.
    pub hidden: bool,
}

impl Output {
    /// Adds what was written.
    pub fn add(&mut self, text: &str) {
        for (i, part) in text.split('\n').enumerate() {
            if i > 0 || self.lines.is_empty() {
                self.lines.push_back(String::new());
            }
            if let Some(last) = self.lines.back_mut() {
                // A carriage return begins the line again, as progress bars do.
                let part = part.trim_end_matches('\r');
                if let Some((_, after)) = part.rsplit_once('\r') {
                    last.clear();
                    last.push_str(after);
                } else {
                    last.push_str(part);
                }
                if last.chars().count() > LETTERS {
                    *last = last.chars().take(LETTERS).collect();
                }
            }
        }
        let excess = self.lines.len().saturating_sub(LINES);
        self.lines.drain(..excess);
    }

    /// Whether there is something to show.
    pub fn is_shown(&self) -> bool {
        !self.hidden && !self.is_empty()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(String::is_empty)
    }

    /// The last `count` lines; an empty one at the end is the cursor's.
    pub fn last(&self, count: usize) -> impl Iterator<Item = &String> {
        let end = self.lines.len() - usize::from(self.lines.back().is_some_and(String::is_empty));
        self.lines.range(end.saturating_sub(count)..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_grow_end_and_begin_again() {
        let mut output = Output::default();
        output.add("one\ntw");
        output.add("o\n10 %\r20 %\r");
        assert_eq!(output.last(9).collect::<Vec<_>>(), ["one", "two", "20 %"]);
        output.add("\n");
        assert_eq!(output.last(1).collect::<Vec<_>>(), ["20 %"]);
        output.add(&"x\n".repeat(1000));
        assert!(output.lines.len() <= LINES);
    }
}
