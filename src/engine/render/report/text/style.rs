//! How a report is drawn: colour, width, marks.

/// How to render.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// ANSI-16 attributes; only where the output is a terminal.
    pub color: bool,
    /// ASCII bars and marks.
    pub ascii: bool,
    /// Columns.
    pub width: usize,
    /// All nodes and metrics, the counts of each node, and why an error is missing.
    pub verbose: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { color: false, ascii: false, width: 100, verbose: false }
    }
}

impl Style {
    /// Marks and bar characters that the style allows.
    pub(super) fn marks(&self) -> &'static Marks {
        if self.ascii { &ASCII } else { &UNICODE }
    }
}

/// The marks of one style.
pub(super) struct Marks {
    pub(super) full: char,
    pub(super) parts: &'static [char],
    pub(super) bottleneck: &'static str,
    pub(super) flagged: &'static str,
    pub(super) wrong: &'static str,
    pub(super) dash: &'static str,
    pub(super) arrow: &'static str,
}

const UNICODE: Marks = Marks {
    full: '█',
    parts: &['▏', '▎', '▍', '▌', '▋', '▊', '▉'],
    bottleneck: "◀ bottleneck",
    flagged: "●",
    wrong: "? mismeasured",
    dash: "·",
    arrow: "→",
};
const ASCII: Marks = Marks {
    full: '#',
    parts: &[],
    bottleneck: "<== bottleneck",
    flagged: "*",
    wrong: "? mismeasured",
    dash: "|",
    arrow: "->",
};
