//! The style of a report: colour, width, marks.

/// How to render.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// ANSI-16 attributes; only where the output is a terminal.
    pub color: bool,
    /// ASCII bars and marks.
    pub ascii: bool,
    /// Columns.
    pub width: usize,
    /// No line is wider: the output is a terminal.
    pub fits: bool,
    /// All nodes and metrics, the counts of each node, and why an error is missing.
    pub verbose: bool,
    /// Neither notes nor what to do next.
    pub quiet: bool,
    /// All hot functions and blocks of the document: their numbers were asked for.
    pub all_code: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            color: false,
            ascii: false,
            width: 100,
            fits: false,
            verbose: false,
            quiet: false,
            all_code: false,
        }
    }
}

impl Style {
    /// Marks and bar characters that the style allows.
    pub(super) fn marks(&self) -> &'static Marks {
        if self.ascii { &ASCII } else { &UNICODE }
    }

    /// A bar of `share` of `width` cells, padded to them.
    pub(super) fn bar(&self, share: f64, width: usize) -> String {
        let marks = self.marks();
        let steps = marks.parts.len() + 1;
        let cells = share.clamp(0.0, 1.0) * width as f64;
        let filled = (cells * steps as f64).round() as usize;
        let mut bar: String = std::iter::repeat_n(marks.full, filled / steps).collect();
        if !filled.is_multiple_of(steps) {
            bar.push(marks.parts[filled % steps - 1]);
        }
        let blank = width - bar.chars().count().min(width);
        bar + &" ".repeat(blank)
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
