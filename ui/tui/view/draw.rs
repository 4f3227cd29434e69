//! The whole screen.

use super::layout::layout;
use super::put::to_ascii;
use super::{
    block, blocks, breadcrumb, calls, comparison, details, estimate, footer, functions, help,
    intervals, output, tree,
};
use crate::keymap::Screen;
use crate::tui::state::State;
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
        breadcrumb::draw(state, buffer, layout.breadcrumb);
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
        output::draw(state, buffer, layout.output);
    }
    footer::draw(state, buffer, layout.footer);
    if state.look.ascii {
        to_ascii(buffer);
    }
}
