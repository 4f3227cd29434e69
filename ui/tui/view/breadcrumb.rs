//! What is around every screen: the breadcrumb above, keys or a prompt below.

use super::ink::{Tone, fit, width};
use crate::tui::action::Command;
use crate::tui::keymap::Bound;
use crate::tui::state::{Ask, Progress, Screen, State};
use crate::tui::update::thread_name;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

/// `tree › functions › multiply › block 0x1957`, and what is going on.
pub fn crumb(state: &State, buffer: &mut Buffer, area: Rect) {
    if area.height == 0 {
        return;
    }
    let look = state.look;
    let columns = usize::from(area.width);
    let status = status(state);
    // The path comes first; the status goes where there is room for both.
    let mut names: Vec<String> = state.path.iter().map(|s| name(state, *s)).collect();
    let room = columns.saturating_sub(width(&status) + 2);
    let long = |names: &[String]| names.iter().map(|n| width(n) + 3).sum::<usize>();
    let mut elided = false;
    while names.len() > 1 && long(&names) > room {
        names.remove(0);
        elided = true;
    }
    if elided {
        names.insert(0, "…".into());
    }
    let mut spans = Vec::new();
    let last = names.len() - 1;
    for (i, name) in names.iter().enumerate() {
        let tone = if i == last { Tone::Bold } else { Tone::Dim };
        spans.push(look.span(name.clone(), tone));
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

fn name(state: &State, screen: Screen) -> String {
    match screen {
        Screen::Tree => match state.tree.report.as_ref().filter(|r| !r.subject.is_empty()) {
            Some(report) => format!("tree of {}", report.subject.join(" ")),
            None => "tree".to_owned(),
        },
        Screen::Functions => "functions".to_owned(),
        Screen::Blocks => {
            let index = state.blocks.index;
            let function = index.and_then(|i| state.functions.all().get(i));
            function.map_or_else(|| "blocks".to_owned(), |f| super::functions::shown(f).to_owned())
        }
        Screen::Block => state.block.title.clone(),
    }
}

fn status(state: &State) -> String {
    let key = state.keys.key(Command::Freeze);
    let frozen = if state.frozen { format!("frozen, {key} goes on") } else { String::new() };
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

/// The prompt, a message, or the most useful keys.
pub fn foot(state: &State, buffer: &mut Buffer, area: Rect) {
    if area.height == 0 {
        return;
    }
    let look = state.look;
    let columns = usize::from(area.width);
    let line = if let Some(prompt) = &state.prompt {
        let head = match prompt.ask {
            Ask::Search => "/",
            Ask::Filter => "filter: ",
            Ask::Thread => "thread: ",
            Ask::Export => "save as (.json: the document): ",
        };
        // The end of a long text is what one is typing.
        let text = format!("{head}{}", prompt.text);
        let skip = (width(&text) + 1).saturating_sub(columns);
        let text: String = text.chars().skip(skip).collect();
        let cursor = Style::default().add_modifier(Modifier::REVERSED);
        let left = columns.saturating_sub(width(&text) + 4);
        let hint = fit(&hint(state), left).trim_end().to_owned();
        let hint = look.span(format!("   {hint}"), Tone::Dim);
        Line::from(vec![Span::raw(text), Span::styled(" ", cursor), hint])
    } else if state.help.is_some() {
        Line::from(look.span("j k scroll   any other key closes", Tone::Dim))
    } else if let Some(message) = &state.message {
        Line::from(look.span(fit(message, columns), Tone::Bold))
    } else {
        keys(state, columns)
    };
    buffer.set_line(area.x, area.y, &line, area.width);
}

/// What can be typed, beside what is typed.
fn hint(state: &State) -> String {
    match &state.prompt {
        Some(prompt) if prompt.ask == Ask::Thread && prompt.text.is_empty() => {
            let some: Vec<String> =
                state.functions.threads.iter().take(8).map(thread_name).collect();
            format!("all, or {}", some.join(", "))
        }
        _ => String::new(),
    }
}

fn keys(state: &State, columns: usize) -> Line<'static> {
    let look = state.look;
    let screen = state.screen();
    let shown = |b: &&Bound| !b.binding.hint.is_empty();
    let useful = |b: &&Bound| shown(b) && (b.binding.hint != "back" || state.path.len() > 1);
    let is_quit = |b: &&Bound| b.binding.command == Command::Quit;
    let mut spans = Vec::new();
    let mut used = 0;
    let quit = state.keys.on(screen).filter(is_quit);
    // Help and quit are what nobody may have to guess.
    let others = state.keys.on(screen).filter(useful).filter(|b| !is_quit(b));
    let mut all: Vec<&Bound> = others.collect();
    all.splice(1.min(all.len())..1.min(all.len()), quit);
    if !state.filter().is_empty() {
        let text = format!("[filter: {}]", state.filter());
        used = width(&text) + 2;
        spans.push(look.span(text + "  ", Tone::Warm));
    }
    for bound in all {
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
