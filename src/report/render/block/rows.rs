//! The report as rows that any page can lay out: a label, text to wrap after it, and its weight; their lines, no wider
//! than a page.

use crate::render::width::Page;

/// Fewest columns of a page that is not narrow.
const NARROW: usize = 80;

/// How to show a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// With the evidence for each bound and assumption, initial values and pages.
    pub verbose: bool,
    /// Without characters beyond ASCII.
    pub ascii: bool,
    /// For a page of few columns: short bars, no bytes of instructions.
    pub narrow: bool,
    /// Columns of the page.
    pub width: usize,
    /// How the reader asks for `verbose`: an option or a key.
    pub more: String,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            verbose: false,
            ascii: false,
            narrow: false,
            width: WIDTH,
            more: "--verbose".to_owned(),
        }
    }
}

impl Style {
    /// For a page, with lines no longer than are read easily.
    #[must_use]
    pub fn on(self, page: Page) -> Self {
        let width = page.width().map_or(WIDTH, |width| width.min(WIDTH));
        Self { width, narrow: self.narrow || page.is_below(NARROW), ..self }
    }
}

/// How much a row stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weight {
    /// Ordinary text.
    #[default]
    Plain,
    /// The answer and headings.
    Strong,
    /// Details.
    Faint,
    /// Doubt about the number.
    Alert,
}

/// One row; long text continues on further lines below its own beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// Label before the text, with its indentation.
    pub label: String,
    /// The text; it may be wrapped at blanks.
    pub text: String,
    /// How much it stands out.
    pub weight: Weight,
}

/// Collects rows.
#[derive(Debug, Default)]
pub struct Rows(pub Vec<Row>);

impl Rows {
    /// Adds a row.
    pub fn add(&mut self, label: impl Into<String>, text: impl Into<String>, weight: Weight) {
        self.0.push(Row { label: label.into(), text: text.into(), weight });
    }

    /// Adds a row of ordinary text.
    pub fn plain(&mut self, label: impl Into<String>, text: impl Into<String>) {
        self.add(label, text, Weight::Plain);
    }

    /// Adds an empty row.
    pub fn blank(&mut self) {
        self.plain("", "");
    }

    /// Adds an empty row and a heading.
    pub fn heading(&mut self, text: &str) {
        self.blank();
        self.add("", text, Weight::Strong);
    }
}

/// Columns of a report.
pub const WIDTH: usize = 100;

/// Columns that further lines are indented by where the label takes most of the page.
const HANGING: usize = 4;

/// Adds `text` after `label`, broken at blanks into lines of `width` columns, further lines indented to where
/// it began. A word longer than a line stays whole.
pub fn labelled(out: &mut String, label: &str, text: &str, width: usize) {
    let begin = label.chars().count();
    let indent = if 3 * begin > 2 * width { HANGING } else { begin };
    out.push_str(label);
    let mut column = begin;
    for (i, word) in text.split(' ').filter(|w| !w.is_empty()).enumerate() {
        let length = word.chars().count();
        let gap = usize::from(i > 0);
        if (i > 0 || begin > indent) && column + gap + length > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if i > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    while out.ends_with(' ') {
        out.pop();
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_after_its_label_and_no_word_is_lost() {
        let words: Vec<String> = (0..60).map(|i| format!("word{i}")).collect();
        let mut out = String::new();
        labelled(&mut out, "  label  ", &words.join(" "), WIDTH);
        assert!(out.lines().all(|l| l.chars().count() <= WIDTH), "{out}");
        assert!(out.lines().skip(1).all(|l| l.starts_with("         word")), "{out}");
        assert_eq!(out.split_whitespace().skip(1).collect::<Vec<_>>(), words);
    }

    #[test]
    fn a_word_longer_than_a_line_stays_whole() {
        let mut out = String::new();
        labelled(&mut out, "  ", &"x".repeat(200), WIDTH);
        assert_eq!(out, format!("  {}\n", "x".repeat(200)));
    }
}
