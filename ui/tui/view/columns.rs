//! The columns of the list of functions.

use crate::tui::look::{fit, fit_right};
use crate::tui::state::State;
use profile::hot::Summary;

/// Title above the loads of functions.
const LOADS: &str = "of loads  cycles";

/// Widths of the columns; 0: not shown.
pub struct Columns {
    pub bar: usize,
    /// The event that dominates a function, if several were sampled.
    pub event: usize,
    pub name: usize,
    /// Share of the recorded loads and their mean latency, if loads were sampled.
    pub loads: usize,
    pub module: usize,
    pub source: usize,
}

impl Columns {
    /// The widths on a screen of `columns` columns.
    pub fn of(columns: usize, hot: &Summary, has_loads: bool) -> Self {
        let (bar, module, source) = match columns {
            110.. => (12, 20, 26),
            80.. => (8, 16, 18),
            60.. => (6, 14, 0),
            36.. => (0, 10, 0),
            _ => (0, 0, 0),
        };
        let gap = |n: usize| if n > 0 { n + 1 } else { 0 };
        let event = match columns {
            _ if hot.events.len() < 2 => 0,
            100.. => 22,
            60.. => 16,
            _ => 0,
        };
        let loads = if has_loads && columns >= 60 { LOADS.len() } else { 0 };
        let others = [bar, event, loads, module, source].into_iter().map(gap).sum::<usize>();
        let name = columns.saturating_sub(9 + others);
        Self { bar, event, name, loads, module, source }
    }

    /// The titles above them; an arrow marks the one that the rows are sorted by.
    pub fn titles(&self, state: &State) -> String {
        let functions = &state.functions;
        let first = if functions.samples { "samples" } else { "share" };
        let order = |name: &str, label: &str| {
            let arrow = if functions.invert { "↑" } else { "↓" };
            if functions.order.label() == label {
                format!("{name}{arrow}")
            } else {
                name.to_owned()
            }
        };
        let mut text = fit_right(&order(first, "share"), 8) + " ";
        if self.bar > 0 {
            text += &" ".repeat(self.bar + 1);
        }
        text += &fit(&order("function", "name"), self.name);
        let others = [
            (self.event, "top event".to_owned()),
            (self.loads, LOADS.to_owned()),
            (self.module, order("module", "module")),
            (self.source, order("source", "source line")),
        ];
        for (width, title) in others.into_iter().filter(|(width, _)| *width > 0) {
            text.push(' ');
            text += &fit(&title, width);
        }
        text
    }
}
