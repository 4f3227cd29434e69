//! Where the parts of the screen are.

use super::{calls_answer, comparison_answer, estimate_answer, headline, info, output};
use crate::keymap::Screen;
use crate::tui::look::wrap;
use crate::tui::state::State;
use ratatui::layout::Rect;

/// Rows from which there are sentences above the list.
const SENTENCES: u16 = 7;

/// Columns from which the tree's details are beside it; rows from which they are below it.
const BESIDE: u16 = 100;
const BELOW: u16 = 14;

/// The parts of the screen. A part without room has height 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layout {
    pub breadcrumb: Rect,
    pub head: Rect,
    /// Rows of the texts at its top: the sentence, the offer of an estimate, what the rows are of.
    pub texts: [u16; 3],
    pub list: Rect,
    /// The tree's details.
    pub details: Rect,
    /// The measured command's output.
    pub output: Rect,
    pub footer: Rect,
}

/// The parts of a screen of the state's size.
pub fn layout(state: &State) -> Layout {
    let (width, height) = state.size;
    let rows = |y, height| Rect { x: 0, y, width, height };
    let breadcrumb = rows(0, u16::from(height >= 3));
    let footer_height = u16::from(height >= 5 || state.prompt.is_some() && height >= 2);
    let footer = rows(height - footer_height, footer_height);
    let shows = state.output.is_shown() && height >= output::FROM;
    let output_height = if shows { output::ROWS } else { 0 };
    let output = rows(height - footer_height - output_height, output_height);
    let body = rows(breadcrumb.height, height - breadcrumb.height - footer_height - output_height);
    let (texts, titles) = match (state.screen(), body.height) {
        (Screen::Block | Screen::EstimatedBlock, _) => ([0; 3], 0),
        (Screen::Intervals, h) => ([0; 3], chart_rows(state, h)),
        (screen, h) if h >= SENTENCES => {
            (texts(state, screen, body), u16::from(screen != Screen::Blocks))
        }
        (_, h) => ([0; 3], u16::from(h >= 5)),
    };
    let head_height = titles + texts.iter().sum::<u16>();
    let head = Rect { height: head_height, ..body };
    let below = Rect { y: body.y + head_height, height: body.height - head_height, ..body };
    let (list, details) = match state.screen() {
        Screen::Tree => split(state, below),
        _ => (below, Rect::default()),
    };
    Layout { breadcrumb, head, texts, list, details, output, footer }
}

/// Rows of the screen's charts: what the phases leave.
fn chart_rows(state: &State, rows: u16) -> u16 {
    let phases = u16::try_from(state.intervals.phases.len()).unwrap_or(u16::MAX);
    let list = phases.clamp(1, (rows / 3).max(1));
    if rows >= 6 { rows - list } else { 0 }
}

/// Rows of the texts above the titles.
fn texts(state: &State, screen: Screen, body: Rect) -> [u16; 3] {
    let Rect { width, height, .. } = body;
    let of = |text: &str, most| text_height(text, width, if height >= 16 { most } else { 1 });
    let about = |text: &str| if height >= 9 { of(text, 4) } else { 0 };
    let sentence = of(&headline::headline(state), 2);
    match screen {
        Screen::Tree => [sentence, 0, u16::from(height >= 9)],
        Screen::Functions => {
            let offer = info::estimate_job(state).map_or(0, |text| of(&text, 2));
            [sentence, offer, about(&info::functions(state))]
        }
        Screen::Blocks => [sentence, 0, about(&info::blocks(state))],
        Screen::Calls => [of(&calls_answer::answer(state), 4), 0, 0],
        screen if screen.is_estimate() => [of(&estimate_answer::answer(state), 4), 0, 0],
        _ => [of(&comparison_answer::answer(state), 4), 0, 0],
    }
}

/// Rows for a text: all of it up to so many.
fn text_height(text: &str, width: u16, most: u16) -> u16 {
    if text.is_empty() {
        return 0;
    }
    let lines = wrap(text, usize::from(width)).len();
    u16::try_from(lines).unwrap_or(most).min(most)
}

/// The tree and its details: side by side, one below the other, or only one of them.
fn split(state: &State, body: Rect) -> (Rect, Rect) {
    let none = Rect::default();
    match state.tree.details {
        Some(false) => (body, none),
        _ if body.width >= BESIDE => {
            let list = body.width * 11 / 20;
            let details = Rect { x: list + 1, width: body.width - list - 1, ..body };
            (Rect { width: list, ..body }, details)
        }
        _ if body.height >= BELOW && body.width >= 30 => {
            // A short tree leaves its room to the details.
            let rows = u16::try_from(state.tree.rows.len()).unwrap_or(u16::MAX);
            let list = (rows.saturating_add(1)).clamp(4, body.height / 2);
            let details = Rect { y: body.y + list, height: body.height - list, ..body };
            (Rect { height: list, ..body }, details)
        }
        Some(true) => (Rect { height: 0, ..body }, body),
        None => (body, none),
    }
}
