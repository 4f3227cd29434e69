//! The texts above the rows of a screen, as high as the layout has them.

use super::layout::Layout;
use super::put::put_wrapped;
use crate::tui::look::{Look, Tone};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Puts the sentence, the offer of an estimate and what the rows are of above the titles.
pub fn put(look: Look, buffer: &mut Buffer, layout: &Layout, texts: [(&str, Tone); 3]) {
    let area = layout.head;
    let mut top = area.y;
    for (height, (text, tone)) in layout.texts.into_iter().zip(texts) {
        put_wrapped(buffer, Rect { y: top, height, ..area }, &look.prose(text), look.style(tone));
        top += height;
    }
}
