//! The line above every screen: `tree › functions › multiply › block 0x1957`, and the state of the
//! measurement.

use super::{comparison, estimate, names};
use crate::keymap::{Command, Screen};
use crate::tui::look::{Tone, fit_middle, width};
use crate::tui::state::{Progress, State};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Draws the line. The names take precedence; the state is shown if there is room for both.
pub fn draw(state: &State, buffer: &mut Buffer, area: Rect) {
    if area.height == 0 {
        return;
    }
    let look = state.look;
    let columns = usize::from(area.width);
    let status = status(state);
    let beside = if status.is_empty() { 0 } else { width(&status) + 2 };
    let names = elided(state, columns.saturating_sub(beside));
    let mut spans = Vec::new();
    let last = names.len() - 1;
    for (i, name) in names.into_iter().enumerate() {
        let tone = if i == last { Tone::Bold } else { Tone::Dim };
        spans.push(look.span(name, tone));
        if i < last {
            spans.push(look.span(" › ", Tone::Dim));
        }
    }
    let used: usize = spans.iter().map(Span::width).sum();
    if used + width(&status) + 2 <= columns {
        spans.push(Span::raw(" ".repeat(columns - used - width(&status))));
        spans.push(look.span(status, Tone::Warm));
    }
    buffer.set_line(area.x, area.y, &Line::from(spans), area.width);
}

/// The names of the screens; without the first ones, and the middle of the last, if they are too long for `room`.
fn elided(state: &State, room: usize) -> Vec<String> {
    let mut names: Vec<String> =
        state.path.iter().enumerate().map(|(i, s)| name(state, i, *s)).collect();
    let long = |names: &[String]| names.iter().map(|n| width(n) + 3).sum::<usize>();
    let mut elided = false;
    while names.len() > 1 && long(&names) > room {
        names.remove(0);
        elided = true;
    }
    if elided {
        names.insert(0, "…".into());
    }
    let used = if elided { width("… › ") } else { 0 };
    if let Some(last) = names.last_mut().filter(|last| used + width(last) > room) {
        *last = fit_middle(last, room.saturating_sub(used)).trim_end().to_owned();
    }
    names
}

/// The name of the screen in this place of the path.
fn name(state: &State, place: usize, screen: Screen) -> String {
    match screen {
        Screen::Tree => match state.tree.report.as_ref().filter(|r| !r.subject.is_empty()) {
            Some(report) => format!("tree of {}", report.subject.join(" ")),
            None => "tree".to_owned(),
        },
        Screen::Intervals => "intervals".to_owned(),
        Screen::Functions => {
            match (place.checked_sub(1).map(|i| state.path[i]), state.intervals.phase()) {
                (Some(Screen::Intervals), Some(_)) => {
                    format!("phase {}", state.intervals.list.at + 1)
                }
                _ => "functions".to_owned(),
            }
        }
        Screen::Blocks => {
            let index = state.blocks.index;
            let function = index.and_then(|i| state.functions.all().get(i));
            function.map_or_else(|| "blocks".to_owned(), |f| names::function(f).to_owned())
        }
        Screen::Block => state.block.shown.title.clone(),
        Screen::Estimate => match state.estimate.document.as_ref() {
            Some(document) => format!("estimated top-down of {}", document.program.name),
            None => "estimated top-down".to_owned(),
        },
        Screen::EstimatedFunctions => "estimated functions".to_owned(),
        Screen::EstimatedCode => {
            let name = state.estimate.opened().map(|row| names::short(&row.name).to_owned());
            name.unwrap_or_else(|| "loops and blocks".to_owned())
        }
        Screen::EstimatedSource => "source".to_owned(),
        Screen::EstimatedBlock => estimate::title(state),
        Screen::Comparison => "comparison of A and B".to_owned(),
        Screen::ComparedCode => comparison::title(state),
        Screen::Calls => {
            // Several of them may be open: each with its own function.
            let before = state.path.iter().take(place).filter(|s| **s == Screen::Calls).count();
            let name = state.calls.trail.get(before).map_or("", |(name, _)| name);
            format!("calls of {}", names::short(name))
        }
    }
}

fn status(state: &State) -> String {
    let key = state.keys.key(Command::Freeze);
    let frozen = if state.frozen { format!("frozen, {key} unfreezes") } else { String::new() };
    let live = match &state.tree.progress {
        Progress::Measuring(0) => "● measuring".to_owned(),
        Progress::Measuring(n) => format!("● measuring, interval {n}"),
        Progress::Loading if state.path[0] == Screen::Tree => "reading".to_owned(),
        _ => String::new(),
    };
    match (frozen.as_str(), live.as_str()) {
        ("", live) => live.to_owned(),
        (frozen, "") => frozen.to_owned(),
        (frozen, live) => format!("{live}, {frozen}"),
    }
}
