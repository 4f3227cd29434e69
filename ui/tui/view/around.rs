//! Draws the surroundings of every screen: above it the names and the state, `tree › functions › multiply › block
//! 0x1957`; below it the last lines of the measured command's output, and the prompt, a message, or the most useful
//! keys.

use super::{comparison, estimate, names};
use crate::keymap::{Bound, Command, Screen};
use crate::tui::look::{Tone, fit, fit_middle, width};
use crate::tui::state::{Ask, EstimateJob, Progress, Prompt, State, thread_name};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

/// Draws the line. The names take precedence; the state is shown if there is room for both.
pub fn draw_breadcrumb(state: &State, buffer: &mut Buffer, area: Rect) {
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

/// Threads that the prompt for one suggests.
const SUGGESTED: usize = 8;

/// Draws the line.
pub fn draw_footer(state: &State, buffer: &mut Buffer, area: Rect) {
    if area.height == 0 {
        return;
    }
    let look = state.look;
    let columns = usize::from(area.width);
    let line = if let Some(prompt) = &state.prompt {
        prompt_line(state, prompt, columns)
    } else if state.help.is_some() {
        Line::from(look.span("j k scroll   any other key closes", Tone::Dim))
    } else if let Some(message) = &state.message {
        Line::from(look.span(fit(message, columns), Tone::Bold))
    } else {
        keys(state, columns)
    };
    buffer.set_line(area.x, area.y, &line, area.width);
}

fn prompt_line(state: &State, prompt: &Prompt, columns: usize) -> Line<'static> {
    let head = match prompt.ask {
        Ask::Search => "/",
        Ask::Filter => "filter: ",
        Ask::Thread => "thread: ",
        Ask::Evidence => "save the evidence as: ",
        Ask::Export => "save as (NAME.json for JSON): ",
    };
    // A long text shows its end.
    let text = format!("{head}{}", prompt.text);
    let skip = (width(&text) + 1).saturating_sub(columns);
    let text: String = text.chars().skip(skip).collect();
    let cursor = Style::default().add_modifier(Modifier::REVERSED);
    let left = columns.saturating_sub(width(&text) + 4);
    let hint = fit(&hint(state, prompt), left).trim_end().to_owned();
    let hint = state.look.span(format!("   {hint}"), Tone::Dim);
    Line::from(vec![Span::raw(text), Span::styled(" ", cursor), hint])
}

/// Hint on what can be typed.
fn hint(state: &State, prompt: &Prompt) -> String {
    if prompt.ask != Ask::Thread || !prompt.text.is_empty() {
        return String::new();
    }
    let threads = state.functions.threads.iter().take(SUGGESTED).map(thread_name);
    format!("all, or {}", threads.collect::<Vec<_>>().join(", "))
}

fn keys(state: &State, columns: usize) -> Line<'static> {
    let look = state.look;
    let mut spans = Vec::new();
    let mut used = 0;
    if !state.filter().is_empty() {
        let text = format!("[filter: {}]", state.filter());
        used = width(&text) + 2;
        spans.push(look.span(text + "  ", Tone::Warm));
    }
    for bound in useful(state) {
        let Some(key) = bound.keys.first().map(|k| k.name()) else { continue };
        let hint = bound.binding.hint;
        let long = width(&key) + 1 + width(hint);
        if used + long > columns {
            break;
        }
        spans.push(look.span(key, Tone::Bold));
        spans.push(look.span(format!(" {hint}  "), Tone::Dim));
        used += long + 2;
    }
    Line::from(spans)
}

/// The keys with a hint; help and quit come first.
fn useful(state: &State) -> Vec<&Bound> {
    let is_quit = |b: &&Bound| b.binding.command == Command::Quit;
    let can_go_back = state.path.len() > 1;
    let shown = |b: &&Bound| {
        let applies = match b.binding.command {
            Command::Back => can_go_back,
            Command::Estimate => state.estimate.job != EstimateJob::None,
            _ => true,
        };
        !b.binding.hint.is_empty() && applies
    };
    let (quit, mut all): (Vec<&Bound>, Vec<&Bound>) =
        state.keys.on(state.screen()).filter(shown).partition(is_quit);
    let first = 1.min(all.len());
    all.splice(first..first, quit);
    all
}

/// Rows of the pane, with its title; rows of the screen from which there is one.
pub const OUTPUT_ROWS: u16 = 5;
pub const OUTPUT_FROM: u16 = 18;

/// Draws the pane.
pub fn draw_output(state: &State, buffer: &mut Buffer, area: Rect) {
    if area.height == 0 {
        return;
    }
    let (look, columns) = (state.look, usize::from(area.width));
    let title = format!("── output of the command; {} hides it ", state.keys.key(Command::Output));
    let title = look.span(fit(&title, columns), Tone::Dim);
    buffer.set_line(area.x, area.y, &Line::from(title), area.width);
    let lines = state.output.last(usize::from(area.height) - 1);
    for (y, text) in (area.y + 1..area.bottom()).zip(lines) {
        let text = fit(&tma::text::name(&text.replace('\t', "    ")), columns);
        buffer.set_line(area.x, y, &Line::from(text), area.width);
    }
}
