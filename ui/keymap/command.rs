//! Commands of keys.

use serde::Serialize;
use std::fmt;

/// A command of the drill-down, by these names in a config file: `NextMatch` is `next-match`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    Quit,
    Help,
    Drill,
    Callers,
    Estimate,
    Output,
    Back,
    Up,
    Down,
    PageUp,
    PageDown,
    HalfUp,
    HalfDown,
    Top,
    Bottom,
    Search,
    NextMatch,
    PreviousMatch,
    Filter,
    Sort,
    Invert,
    Toggle,
    Expand,
    Collapse,
    ExpandAll,
    CollapseAll,
    Hottest,
    NextHot,
    PreviousHot,
    NextSymbol,
    PreviousSymbol,
    Source,
    Offsets,
    Samples,
    Details,
    DetailsDown,
    DetailsUp,
    NextPart,
    Module,
    Thread,
    NextEvent,
    Intervals,
    ZoomIn,
    ZoomOut,
    Earlier,
    Later,
    Freeze,
    Again,
    Cancel,
    Copy,
    Export,
    Evidence,
    Suspend,
    Redraw,
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Config files have these names.
    #[test]
    fn names_are_words_with_dashes() {
        let all = [Command::Quit, Command::NextMatch, Command::HalfUp, Command::PreviousSymbol];
        let names = ["quit", "next-match", "half-up", "previous-symbol"];
        assert_eq!(all.map(|one| one.to_string()), names);
    }
}
