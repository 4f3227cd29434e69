//! A measured block: the lines of its report.

use super::layout::Layout;
use super::put::put_row;
use crate::tui::state::State;
use ratatui::buffer::Buffer;
use ratatui::text::Line;

/// Draws the screen.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    let block = &state.block;
    let area = layout.list;
    for (y, row) in block.list.shown(usize::from(area.height)).enumerate() {
        if let Some(line) = block.lines.get(row) {
            let text = state.look.prose(&line.text).into_owned();
            let line = Line::from(state.look.span(text, line.tone));
            put_row(buffer, area, y, &line, row == block.list.at);
        }
    }
}
