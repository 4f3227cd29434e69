//! Puts lines into the frame's buffer: rows, texts above them, paragraphs with labels; finds the parts of the
//! screen that they go into.

use crate::tui::look::{Look, Tone, fit, width, wrap};
use crate::tui::state::{List, TextLine};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

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
fn put_row(buffer: &mut Buffer, area: Rect, row: usize, line: &Line<'_>, selected: bool) {
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

/// Puts the visible rows of a list into an area, as far as there are lines for them.
pub fn put_rows(
    buffer: &mut Buffer,
    area: Rect,
    list: &List,
    line: impl Fn(usize) -> Option<Line<'static>>,
) {
    for (y, row) in list.shown(usize::from(area.height)).enumerate() {
        if let Some(line) = line(row) {
            put_row(buffer, area, y, &line, row == list.at);
        }
    }
}

/// Puts an answer into an area, and the titles of the rows below it into its last line.
pub fn put_head(look: Look, buffer: &mut Buffer, area: Rect, answer: &str, titles: &Line<'_>) {
    if area.height > 0 {
        let above = Rect { height: area.height - 1, ..area };
        put_wrapped(buffer, above, &look.prose(answer), look.style(Tone::Bold));
        buffer.set_line(area.x, area.bottom() - 1, titles, area.width);
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
        '◆' => '#',
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

/// Puts the sentence, the offer of an estimate and what the rows are of above the titles.
pub fn put_texts(look: Look, buffer: &mut Buffer, layout: &Layout, texts: [(&str, Tone); 3]) {
    let area = layout.head;
    let mut top = area.y;
    for (height, (text, tone)) in layout.texts.into_iter().zip(texts) {
        put_wrapped(buffer, Rect { y: top, height, ..area }, &look.prose(text), look.style(tone));
        top += height;
    }
}

/// Lines of at most `columns` columns.
pub struct Paragraphs {
    pub columns: usize,
    pub lines: Vec<TextLine>,
}

impl Paragraphs {
    /// No lines yet.
    pub fn new(columns: usize) -> Self {
        Self { columns: columns.max(1), lines: Vec::new() }
    }

    /// Adds a line.
    pub fn push(&mut self, text: String, tone: Tone) {
        self.lines.push(TextLine { text, tone });
    }

    /// Adds an empty line.
    pub fn blank(&mut self) {
        self.push(String::new(), Tone::Plain);
    }

    /// Adds text after a label, further lines indented to where it began; on a narrow screen below
    /// the label.
    pub fn paragraph(&mut self, label: &str, text: &str, tone: Tone) {
        let mut indent = width(label);
        let mut head = label.to_owned();
        if 2 * indent > self.columns && !label.trim().is_empty() {
            self.push(label.trim_end().to_owned(), tone);
            if text.is_empty() {
                return;
            }
            indent = 2.min(self.columns / 4);
            head = " ".repeat(indent);
        }
        for line in wrap(text, self.columns.saturating_sub(indent)) {
            self.push(format!("{head}{line}").trim_end().to_owned(), tone);
            head = " ".repeat(indent);
        }
    }
}
