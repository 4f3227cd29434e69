//! Lines of text with headings and labels.

use crate::tui::look::{Tone, width, wrap};
use crate::tui::state::Line;

/// Lines of at most `columns` columns.
pub struct Paragraphs {
    pub columns: usize,
    pub lines: Vec<Line>,
}

impl Paragraphs {
    /// No lines yet.
    pub fn new(columns: usize) -> Self {
        Self { columns: columns.max(1), lines: Vec::new() }
    }

    /// Adds a line.
    pub fn push(&mut self, text: String, tone: Tone) {
        self.lines.push(Line { text, tone });
    }

    /// Adds an empty line.
    pub fn blank(&mut self) {
        self.push(String::new(), Tone::Plain);
    }

    /// Adds text after a label, further lines indented to where it began; on a narrow screen below
    /// the label.
    pub fn paragraph(&mut self, label: &str, text: &str, tone: Tone) {
        let mut indent = width(label);
        let mut head = label.to_owned();
        if 2 * indent > self.columns && !label.trim().is_empty() {
            self.push(label.trim_end().to_owned(), tone);
            if text.is_empty() {
                return;
            }
            indent = 2.min(self.columns / 4);
            head = " ".repeat(indent);
        }
        for line in wrap(text, self.columns.saturating_sub(indent)) {
            self.push(format!("{head}{line}").trim_end().to_owned(), tone);
            head = " ".repeat(indent);
        }
    }
}
