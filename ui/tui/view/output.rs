//! The last lines of the measured command's output.

use crate::keymap::Command;
use crate::tui::look::{Tone, fit};
use crate::tui::state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// Rows of the pane, with its title; rows of the screen from which there is one.
pub const ROWS: u16 = 5;
pub const FROM: u16 = 18;

/// Draws the pane.
pub fn draw(state: &State, buffer: &mut Buffer, area: Rect) {
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
