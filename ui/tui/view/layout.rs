//! Where the parts of the screen are.

use super::{calls_answer, comparison_answer, estimate_answer, info, intervals, output};
use crate::keymap::Screen;
use crate::tui::state::State;
use crate::tui::width::wrap;
use ratatui::layout::Rect;

/// Columns from which the tree's details are beside it; rows from which they are below it.
const BESIDE: u16 = 100;
const BELOW: u16 = 14;

/// The parts of the screen. A part without room has height 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layout {
    pub breadcrumb: Rect,
    pub head: Rect,
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
    let head_height = match (state.screen(), body.height) {
        (Screen::Block | Screen::EstimatedBlock, _) => 0,
        (Screen::Functions, h) if h >= 9 => {
            let offer = u16::from(info::estimate_job(state).is_some());
            1 + offer + info_height(&info::functions(state), width, h)
        }
        (screen, h) if screen.is_estimate() && h >= 9 => {
            1 + info_height(&estimate_answer::answer(state), width, h)
        }
        (screen, h) if screen.is_comparison() && h >= 9 => {
            1 + info_height(&comparison_answer::answer(state), width, h)
        }
        (Screen::Intervals, h) => intervals::chart_rows(state, h),
        (Screen::Calls, h) if h >= 9 => 1 + info_height(&calls_answer::answer(state), width, h),
        (screen, h) if screen.is_estimate() => u16::from(h >= 5),
        (Screen::Blocks, h) if h >= 9 => info_height(&info::blocks(state), width, h).max(1),
        (_, h) if h >= 9 => 2,
        (_, h) if h >= 5 => 1,
        _ => 0,
    };
    let head = Rect { height: head_height, ..body };
    let below = Rect { y: body.y + head_height, height: body.height - head_height, ..body };
    let (list, details) = match state.screen() {
        Screen::Tree => split(state, below),
        _ => (below, Rect::default()),
    };
    Layout { breadcrumb, head, list, details, output, footer }
}

/// Rows for the information above the rows: all of it if there is room.
fn info_height(text: &str, width: u16, height: u16) -> u16 {
    let most = if height >= 16 { 4 } else { 1 };
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
