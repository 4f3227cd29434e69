//! Lines put into the frame's buffer.

use crate::tui::look::{Look, Tone, fit, wrap};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

/// The tone of a share of the samples.
pub fn heat(share: f64) -> Tone {
    match share {
        s if s >= 0.1 => Tone::Hot,
        s if s >= 0.02 => Tone::Warm,
        s if s < 0.0005 => Tone::Dim,
        _ => Tone::Plain,
    }
}

/// Puts lines into an area, one below the other, from line `top` on.
pub fn put(buffer: &mut Buffer, area: Rect, lines: &[Line<'_>], top: usize) {
    for (y, line) in (area.top()..area.bottom()).zip(lines.iter().skip(top)) {
        buffer.set_line(area.x, y, line, area.width);
    }
}

/// Puts a paragraph into an area in place of rows.
pub fn put_prose(buffer: &mut Buffer, area: Rect, look: Look, text: &str) {
    let lines = wrap(&look.prose(text), usize::from(area.width));
    let lines: Vec<Line> = lines.into_iter().map(Line::from).collect();
    put(buffer, area, &lines, 0);
}

/// Puts a paragraph into an area; if it is too long it ends in an ellipsis.
pub fn put_wrapped(buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
    let columns = usize::from(area.width);
    let lines = wrap(text, columns);
    let height = usize::from(area.height);
    for (i, line) in lines.iter().take(height).enumerate() {
        let cut = i + 1 == height && lines.len() > height;
        let line = if cut { fit(&lines[i..].join(" "), columns) } else { line.clone() };
        let Ok(row) = u16::try_from(i) else { return };
        buffer.set_stringn(area.x, area.y + row, line, columns, style);
    }
}

/// Puts one line into a row of an area; the row of the cursor is reversed over its whole width.
pub fn put_row(buffer: &mut Buffer, area: Rect, row: usize, line: &Line<'_>, selected: bool) {
    let Ok(row) = u16::try_from(row) else { return };
    if row >= area.height {
        return;
    }
    let y = area.y + row;
    buffer.set_line(area.x, y, line, area.width);
    if selected {
        let style = Style::default().add_modifier(Modifier::REVERSED);
        buffer.set_style(Rect { y, height: 1, ..area }, style);
    }
}

/// Replaces every character outside ASCII by one of the same width.
pub fn to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let symbol = cell.symbol();
        if !symbol.is_ascii() {
            let c = symbol.chars().next().map_or(' ', ascii);
            cell.set_char(c);
        }
    }
}

fn ascii(c: char) -> char {
    match c {
        '…' => '~',
        '›' | '→' => '>',
        '←' | '◀' => '<',
        '↑' => '^',
        '↓' => 'v',
        '↺' => '@',
        '●' => '*',
        '▸' => '+',
        '▾' | '─' | '–' => '-',
        '·' | '│' => '|',
        '┌' | '└' => '+',
        '▶' => '>',
        'µ' => 'u',
        '±' => '~',
        '×' => 'x',
        _ => '?',
    }
}
