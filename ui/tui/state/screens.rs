//! The whole state, and which part of it depends on the screen that is shown; below every screen the prompt, and
//! the last lines that the measured command has written.

use super::blocks::{BlockScreen, Blocks};
use super::comparison::Comparison;
use super::counts::{Counts, Loads};
use super::estimate::Estimated;
use super::functions::{Calls, Functions};
use super::intervals::Intervals;
use super::list::{List, Wanted};
use super::tree::Tree;
use crate::keymap::{Keymap, Screen};
use crate::tui::look::Look;
use std::collections::VecDeque;

/// The state of the drill-down.
#[derive(Debug)]
pub struct State {
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    pub look: Look,
    pub keys: Keymap,
    /// Where keys and theme are configured, for the `?` screen.
    pub config: Option<String>,
    /// The screens from the first to the one that is shown; not empty.
    pub path: Vec<Screen>,
    pub tree: Tree,
    pub functions: Functions,
    pub blocks: Blocks,
    /// Counts of another run.
    pub counts: Option<Counts>,
    /// Counts of recorded branches, by number of their event.
    pub recorded_counts: Vec<(usize, Counts)>,
    /// Recorded samples of loads.
    pub recorded_loads: Vec<(usize, Loads)>,
    pub block: BlockScreen,
    pub estimate: Estimated,
    pub comparison: Comparison,
    pub calls: Calls,
    pub intervals: Intervals,
    /// Output of the measured command.
    pub output: Output,
    pub prompt: Option<Prompt>,
    /// First visible line of the `?` screen, while it is open.
    pub help: Option<usize>,
    /// Shown until the next key.
    pub message: Option<String>,
    /// The last search.
    pub search: String,
    /// New numbers are held back.
    pub frozen: bool,
}

/// The cursor of the screen that a state shows, as this kind of reference.
macro_rules! list {
    ($state:ident, $($reference:tt)+) => {
        match $state.screen() {
            Screen::Tree => $($reference)+ $state.tree.list,
            Screen::Functions => $($reference)+ $state.functions.list,
            Screen::Blocks => $($reference)+ $state.blocks.list,
            Screen::Block => $($reference)+ $state.block.list,
            Screen::Estimate => $($reference)+ $state.estimate.program.list,
            Screen::EstimatedFunctions => $($reference)+ $state.estimate.functions.list,
            Screen::EstimatedCode => $($reference)+ $state.estimate.code.list,
            Screen::EstimatedSource => $($reference)+ $state.estimate.source.list,
            Screen::EstimatedBlock => $($reference)+ $state.estimate.list,
            Screen::Comparison => $($reference)+ $state.comparison.functions.list,
            Screen::ComparedCode => $($reference)+ $state.comparison.code.list,
            Screen::Calls => $($reference)+ $state.calls.list,
            Screen::Intervals => $($reference)+ $state.intervals.list,
        }
    };
}

impl State {
    /// The counts shown: those that were asked for, else those of the recorded branches of the event that is shown.
    pub fn counts(&self) -> Option<&Counts> {
        let event = self.functions.event();
        let own = self.recorded_counts.iter().find(|(number, _)| *number == event);
        self.counts.as_ref().or(own.map(|(_, counts)| counts))
    }

    /// The recorded samples of loads: of the event that is shown, or, if it samples none, of the first that does.
    pub fn loads(&self) -> Option<&Loads> {
        let event = self.functions.event();
        let own = self.recorded_loads.iter().find(|(number, _)| *number == event);
        own.or(self.recorded_loads.first()).map(|(_, loads)| loads)
    }

    /// An empty state that begins with the screen `first`.
    pub fn new(first: Screen, look: Look) -> Self {
        Self {
            size: (80, 24),
            look,
            keys: Keymap::default(),
            config: None,
            path: vec![first],
            tree: Tree::default(),
            functions: Functions::default(),
            blocks: Blocks::default(),
            counts: None,
            recorded_counts: Vec::new(),
            recorded_loads: Vec::new(),
            block: BlockScreen::default(),
            estimate: Estimated::default(),
            comparison: Comparison::default(),
            calls: Calls::default(),
            intervals: Intervals::default(),
            output: Output::default(),
            prompt: None,
            help: None,
            message: None,
            search: String::new(),
            frozen: false,
        }
    }

    /// The screen that is shown.
    pub fn screen(&self) -> Screen {
        self.path.last().copied().unwrap_or(Screen::Tree)
    }

    /// The cursor of the screen that is shown.
    pub fn list(&self) -> &List {
        list!(self, &)
    }

    /// See [`State::list`].
    pub fn list_mut(&mut self) -> &mut List {
        list!(self, &mut)
    }

    /// Whether a row matches a search.
    pub fn row_matches(&self, row: usize, wanted: &Wanted) -> bool {
        let lower = match self.screen() {
            Screen::Functions => self.functions.lower(row),
            Screen::EstimatedFunctions => self.estimate.lower(row),
            screen if screen.is_comparison() => {
                let which = self.comparison.rows(screen).shown.get(row);
                which.and_then(|which| self.comparison.lower(*which))
            }
            _ => None,
        };
        wanted.is_in_lower(lower, || self.row_text(row))
    }

    /// The text of a row.
    pub fn row_text(&self, row: usize) -> String {
        match self.screen() {
            Screen::Tree => self.tree.row_text(row),
            Screen::Functions => self.functions.row_text(row),
            Screen::Blocks => self.blocks.row_text(row),
            Screen::Block => self.block.row_text(row),
            Screen::Calls => self.calls.row_text(row),
            Screen::Intervals => self.intervals.row_text(row),
            screen if screen.is_comparison() => {
                let of = self.comparison.row(screen, row);
                of.map_or_else(String::new, |(row, _)| self.comparison.text(row))
            }
            screen => self.estimate.row_text(screen, row),
        }
    }

    /// The filter of the screen that is shown.
    pub fn filter(&self) -> &str {
        match self.screen() {
            Screen::Tree => &self.tree.filter,
            Screen::Functions => &self.functions.filter,
            Screen::Blocks => &self.blocks.filter,
            Screen::EstimatedFunctions => &self.estimate.functions.filter,
            Screen::EstimatedCode => &self.estimate.code.filter,
            screen if screen.is_comparison() => &self.comparison.rows(screen).filter,
            _ => "",
        }
    }

    /// Filters the screen that is shown.
    pub fn set_filter(&mut self, text: &str) {
        match self.screen() {
            Screen::Tree => {
                self.tree.filter = text.to_owned();
                self.tree.rebuild();
            }
            Screen::Functions => {
                self.functions.filter = text.to_owned();
                self.functions.rebuild();
            }
            Screen::Blocks => {
                self.blocks.filter = text.to_owned();
                self.blocks.rebuild();
            }
            Screen::EstimatedFunctions => {
                self.estimate.functions.filter = text.to_owned();
                self.estimate.rebuild_functions();
            }
            Screen::EstimatedCode => {
                self.estimate.code.filter = text.to_owned();
                self.estimate.rebuild_code();
            }
            screen if screen.is_comparison() => {
                self.comparison.rows_mut(screen).filter = text.to_owned();
                self.comparison.rebuild(screen);
            }
            _ => {}
        }
    }

    /// Whether a measurement runs whose progress is shown.
    pub fn is_busy(&self) -> bool {
        self.screen() == Screen::Block && self.block.is_running()
    }
}

/// Purpose of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    Search,
    Filter,
    /// The thread whose samples are shown.
    Thread,
    /// The file that the screen is saved in.
    Export,
    /// The file that the evidence of the estimate is saved in.
    Evidence,
}

/// An open prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub ask: Ask,
    pub text: String,
    /// The cursor and the text before it was opened, restored when it is aborted.
    pub row: usize,
    pub before: String,
}

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
