//! The line below every screen: the prompt, a message, or the most useful keys.

use crate::keymap::{Bound, Command};
use crate::tui::look::{Tone, fit, width};
use crate::tui::state::{Ask, EstimateJob, Prompt, State, thread_name};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

/// Threads that the prompt for one suggests.
const SUGGESTED: usize = 8;

/// Draws the line.
pub fn draw(state: &State, buffer: &mut Buffer, area: Rect) {
    if area.height == 0 {
        return;
    }
    let look = state.look;
    let columns = usize::from(area.width);
    let line = if let Some(prompt) = &state.prompt {
        prompt_line(state, prompt, columns)
    } else if state.help.is_some() {
        Line::from(look.span("j k scroll   q closes, as any other key", Tone::Dim))
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
