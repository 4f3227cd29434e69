//! Draws the state on the screen. Pure: reads the state, draws into the frame's buffer. This file has the whole
//! screen: its parts, how far they scroll, and all its rows as text.
//!
//! | file | concern |
//! |---|---|
//! | `around` | what is around every screen |
//! | `tree`, `details` | the tree, and the details of a node |
//! | `functions`, `calls` | functions; callers and callees of one |
//! | `blocks`, `block` | the blocks of a function and its loops; a measured block |
//! | `estimate`, `estimate_row` | an estimated top-down; rows with the parts of their time |
//! | `comparison` | two measurements compared |
//! | `intervals` | the intervals over time |
//! | `help` | the `?` screen |
//! | `headline`, `names` | the texts above tree, functions and blocks; names in them |
//! | `put` | lines into the buffer, and with labels |

mod around;
mod block;
mod blocks;
mod calls;
mod comparison;
mod details;
mod estimate;
mod estimate_row;
mod functions;
mod headline;
mod help;
mod intervals;
mod names;
mod put;
mod tree;

pub use block::lines as block_lines;
pub use estimate_row::{SEVERAL_PATHS, lines as estimate_lines};

use super::look::wrap;
use super::state::State;
use crate::keymap::Screen;
use put::{Layout, to_ascii};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws the state into the frame.
pub fn view(state: &State, frame: &mut Frame<'_>) {
    let buffer = frame.buffer_mut();
    // The terminal may have another size by now.
    if (buffer.area.width, buffer.area.height) == state.size {
        draw(state, buffer);
    }
}

/// Draws the state into a buffer of its size.
pub fn draw(state: &State, buffer: &mut Buffer) {
    let layout = layout(state);
    let (width, height) = state.size;
    if state.help.is_some() {
        let body = Rect { height: height - layout.footer.height, width, x: 0, y: 0 };
        help::draw(state, buffer, body);
    } else {
        around::draw_breadcrumb(state, buffer, layout.breadcrumb);
        match state.screen() {
            Screen::Tree => {
                tree::draw(state, buffer, &layout);
                details::draw(state, buffer, layout.details);
            }
            Screen::Functions => functions::draw(state, buffer, &layout),
            Screen::Blocks => blocks::draw(state, buffer, &layout),
            Screen::Block => block::draw(state, buffer, &layout),
            Screen::Calls => calls::draw(state, buffer, &layout),
            Screen::Intervals => intervals::draw(state, buffer, &layout),
            screen if screen.is_comparison() => comparison::draw(state, buffer, &layout),
            _ => estimate::draw(state, buffer, &layout),
        }
        around::draw_output(state, buffer, layout.output);
    }
    around::draw_footer(state, buffer, layout.footer);
    if state.look.ascii {
        to_ascii(buffer);
    }
}

/// Rows from which there are sentences above the list.
const SENTENCES: u16 = 7;

/// Columns from which the tree's details are beside it; rows from which they are below it.
const BESIDE: u16 = 100;
const BELOW: u16 = 14;

/// The parts of a screen of the state's size.
pub fn layout(state: &State) -> Layout {
    let (width, height) = state.size;
    let rows = |y, height| Rect { x: 0, y, width, height };
    let breadcrumb = rows(0, u16::from(height >= 3));
    let footer_height = u16::from(height >= 5 || state.prompt.is_some() && height >= 2);
    let footer = rows(height - footer_height, footer_height);
    let shows = state.output.is_shown() && height >= around::OUTPUT_FROM;
    let output_height = if shows { around::OUTPUT_ROWS } else { 0 };
    let output = rows(height - footer_height - output_height, output_height);
    let body = rows(breadcrumb.height, height - breadcrumb.height - footer_height - output_height);
    let (texts, titles) = match (state.screen(), body.height) {
        (Screen::Block | Screen::EstimatedBlock, _) => ([0; 3], 0),
        (Screen::Intervals, h) => ([0; 3], chart_rows(state, h)),
        (screen, h) if h >= SENTENCES => (texts(state, screen, body), 1),
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
            let offer = headline::estimate_job(state).map_or(0, |text| of(&text, 2));
            [sentence, offer, about(&headline::about_functions(state))]
        }
        Screen::Blocks => [sentence, 0, about(&headline::about_blocks(state))],
        Screen::Calls => [of(&calls::answer(state), 4), 0, 0],
        screen if screen.is_estimate() => [of(&estimate::answer(state), 4), 0, 0],
        _ => [of(&comparison::answer(state), 4), 0, 0],
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

/// Scrolls texts back so that their last line is at the bottom.
pub fn clamp_scrolls(state: &mut State) {
    let layout = layout(state);
    if let Some(top) = state.help {
        let height = usize::from(state.size.1 - layout.footer.height);
        let lines = help::lines(state, usize::from(state.size.0)).len();
        state.help = Some(top.min(lines.saturating_sub(height)));
    }
    if state.tree.details_top > 0 {
        let lines = details::lines(state, usize::from(layout.details.width)).len();
        let most = lines.saturating_sub(usize::from(layout.details.height));
        state.tree.details_top = state.tree.details_top.min(most);
    }
}

/// Rows that are drawn at once.
const PAGE: usize = 1000;

/// The screen with all its rows, visible or not, and without the footer.
pub fn text(state: &mut State) -> String {
    let (size, list) = (state.size, *state.list());
    let help = state.help.take();
    let rows = match state.screen() {
        // Twice as many for the details below the tree.
        Screen::Tree => 2 * list.rows + 80,
        _ => list.rows + 16,
    };
    state.size.1 = u16::try_from(rows.min(PAGE)).unwrap_or(size.1);
    let lines = pages(state, list.rows);
    (state.size, state.help) = (size, help);
    *state.list_mut() = list;
    lines.join("\n").trim_end_matches('\n').to_owned() + "\n"
}

/// The lines of as many pages as the rows need; what is around the rows comes once.
fn pages(state: &mut State, rows: usize) -> Vec<String> {
    let area = Rect { x: 0, y: 0, width: state.size.0, height: state.size.1 };
    let layout = layout(state);
    let mut lines: Vec<String> = Vec::new();
    let mut top = 0;
    loop {
        state.list_mut().top = top;
        let mut buffer = Buffer::empty(area);
        draw(state, &mut buffer);
        let (from, to) = match top {
            0 => (0, layout.footer.y),
            _ => (layout.list.y, layout.list.bottom()),
        };
        lines.extend((from..to).map(|y| {
            let line: String = (0..area.width).map(|x| buffer[(x, y)].symbol()).collect();
            line.trim_end().to_owned()
        }));
        top += usize::from(layout.list.height).max(1);
        if top >= rows {
            return lines;
        }
    }
}
