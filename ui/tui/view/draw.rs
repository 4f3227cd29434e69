//! From the state to the screen. Pure: reads the state, draws into the frame's buffer.

mod block;
mod blocks;
mod details;
mod frame;
mod functions;
mod help;
pub mod ink;
pub mod report;
mod tree;

use super::state::{Screen, State};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Columns from which the tree's details stand beside it; rows from which they stand below it.
const BESIDE: u16 = 100;
const BELOW: u16 = 14;

/// Where things are. What has no room has no height.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layout {
    pub crumb: Rect,
    pub head: Rect,
    pub list: Rect,
    /// The tree's details.
    pub pane: Rect,
    pub foot: Rect,
}

/// Where things are on a screen of the state's size.
pub fn layout(state: &State) -> Layout {
    let (width, height) = state.size;
    let rows = |y, height| Rect { x: 0, y, width, height };
    let crumb = rows(0, u16::from(height >= 3));
    let foot_height = u16::from(height >= 5 || state.prompt.is_some() && height >= 2);
    let foot = rows(height - foot_height, foot_height);
    let body = rows(crumb.height, height - crumb.height - foot_height);
    let head_height = match (state.screen(), body.height) {
        (Screen::Block, _) => 0,
        (Screen::Functions, h) if h >= 9 => 1 + told(functions::info(state), width, h),
        (Screen::Blocks, h) if h >= 9 => told(blocks::info(state), width, h).max(1),
        (_, h) if h >= 9 => 2,
        (_, h) if h >= 5 => 1,
        _ => 0,
    };
    let head = Rect { height: head_height, ..body };
    let below = Rect { y: body.y + head_height, height: body.height - head_height, ..body };
    let (list, pane) = match state.screen() {
        Screen::Tree => split(state, below),
        _ => (below, Rect::default()),
    };
    Layout { crumb, head, list, pane, foot }
}

/// Rows for what must be known of the numbers: all of it where there is room.
fn told(text: String, width: u16, height: u16) -> u16 {
    let most = if height >= 16 { 4 } else { 1 };
    let lines = ink::wrap(&text, usize::from(width)).len();
    u16::try_from(lines).unwrap_or(most).min(most)
}

/// The tree and its details: side by side, one below the other, or one of them alone.
fn split(state: &State, body: Rect) -> (Rect, Rect) {
    let none = Rect::default();
    match state.tree.details {
        Some(false) => (body, none),
        _ if body.width >= BESIDE => {
            let list = body.width * 11 / 20;
            let pane = Rect { x: list + 1, width: body.width - list - 1, ..body };
            (Rect { width: list, ..body }, pane)
        }
        _ if body.height >= BELOW && body.width >= 30 => {
            // A short tree leaves the room to its details.
            let rows = u16::try_from(state.tree.rows.len()).unwrap_or(u16::MAX);
            let list = (rows.saturating_add(1)).clamp(4, body.height / 2);
            let pane = Rect { y: body.y + list, height: body.height - list, ..body };
            (Rect { height: list, ..body }, pane)
        }
        Some(true) => (Rect { height: 0, ..body }, body),
        None => (body, none),
    }
}

/// Draws everything.
pub fn view(state: &State, frame: &mut Frame<'_>) {
    let buffer = frame.buffer_mut();
    // The terminal may have changed since the state was told.
    let (width, height) = (buffer.area.width, buffer.area.height);
    if (width, height) != state.size {
        return;
    }
    draw(state, buffer);
}

fn draw(state: &State, buffer: &mut Buffer) {
    let layout = layout(state);
    let (width, height) = state.size;
    if state.help.is_some() {
        let body = Rect { height: height - layout.foot.height, width, x: 0, y: 0 };
        help::draw(state, buffer, body);
    } else {
        frame::crumb(state, buffer, layout.crumb);
        match state.screen() {
            Screen::Tree => {
                tree::draw(state, buffer, &layout);
                details::draw(state, buffer, layout.pane);
            }
            Screen::Functions => functions::draw(state, buffer, &layout),
            Screen::Blocks => blocks::draw(state, buffer, &layout),
            Screen::Block => block::draw(state, buffer, &layout),
        }
    }
    frame::foot(state, buffer, layout.foot);
    if state.look.ascii {
        ink::to_ascii(buffer);
    }
}

/// Most rows that are drawn at once for a text.
const PAGE: usize = 1000;

/// The whole screen as text: all rows, not only those that are in view, and no keys.
pub fn text(state: &mut State) -> String {
    let (size, list) = (state.size, *state.list());
    let help = state.help.take();
    let rows = match state.screen() {
        // The details stand below a tree; they get as much room again.
        Screen::Tree => 2 * list.rows + 80,
        _ => list.rows + 16,
    };
    state.size.1 = u16::try_from(rows.min(PAGE)).unwrap_or(size.1);
    let area = Rect { x: 0, y: 0, width: state.size.0, height: state.size.1 };
    let shape = layout(state);
    let mut lines: Vec<String> = Vec::new();
    let mut top = 0;
    loop {
        state.list_mut().top = top;
        let mut buffer = Buffer::empty(area);
        draw(state, &mut buffer);
        // What is around the rows is said once.
        let from = if top == 0 { 0 } else { shape.list.y };
        let to = if top == 0 { shape.foot.y } else { shape.list.bottom() };
        lines.extend((from..to).map(|y| {
            let line: String = (0..area.width).map(|x| buffer[(x, y)].symbol()).collect();
            line.trim_end().to_owned()
        }));
        top += usize::from(shape.list.height).max(1);
        if top >= list.rows {
            break;
        }
    }
    (state.size, state.help) = (size, help);
    *state.list_mut() = list;
    let kept = lines.iter().rposition(|l| !l.is_empty()).map_or(0, |last| last + 1);
    lines.truncate(kept);
    lines.join("\n") + "\n"
}

/// Scrolled texts end with their last line on the screen.
pub fn clamp_scrolls(state: &mut State) {
    let layout = layout(state);
    if let Some(top) = state.help {
        let height = usize::from(state.size.1 - layout.foot.height);
        let lines = help::lines(state, usize::from(state.size.0)).len();
        state.help = Some(top.min(lines.saturating_sub(height)));
    }
    if state.tree.details_top > 0 {
        let lines = details::lines(state, usize::from(layout.pane.width)).len();
        let most = lines.saturating_sub(usize::from(layout.pane.height));
        state.tree.details_top = state.tree.details_top.min(most);
    }
}
