//! The screen as text.

use super::draw::draw;
use super::layout::layout;
use crate::keymap::Screen;
use crate::tui::state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

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
