//! Text as the terminal takes it: columns, bars, sparklines, wrapping, ASCII.

use crate::tui::state::Look;
pub use crate::tui::theme::Tone;
use engine::render::format;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use std::borrow::Cow;

/// Eighths of a cell, from the left and from below.
const LEFT: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
const BELOW: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// What stands for them in ASCII.
const BELOW_ASCII: [char; 8] = ['_', '.', ',', '-', '=', '+', '*', '#'];

impl Look {
    /// The style of a tone.
    pub fn style(self, tone: Tone) -> Style {
        self.theme.style(tone)
    }

    /// A span.
    pub fn span(self, text: impl Into<String>, tone: Tone) -> Span<'static> {
        Span::styled(text.into(), self.style(tone))
    }

    /// Prose from elsewhere, in ASCII where that is wanted.
    pub fn prose(self, text: &str) -> Cow<'_, str> {
        if self.ascii { Cow::Owned(format::ascii(text)) } else { Cow::Borrowed(text) }
    }

    /// `±`, or what stands for it.
    pub fn plus_minus(self) -> &'static str {
        if self.ascii { "+-" } else { "±" }
    }

    /// A bar of `width` cells for a share.
    pub fn bar(self, share: f64, width: usize) -> String {
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        let eighths = (share * width as f64 * 8.0).round() as usize;
        let (full, rest) = (eighths / 8, eighths % 8);
        let mut bar = String::new();
        if self.ascii {
            bar.extend(std::iter::repeat_n('#', full + usize::from(rest >= 4)));
        } else {
            bar.extend(std::iter::repeat_n('█', full));
            if rest > 0 {
                bar.push(LEFT[rest - 1]);
            }
        }
        fit(&bar, width)
    }

    /// The last `width` values as columns, scaled to the largest of them, and that one.
    pub fn sparkline(
        self,
        values: impl DoubleEndedIterator<Item = Option<f64>>,
        width: usize,
    ) -> (String, f64) {
        let mut last: Vec<Option<f64>> = values.rev().take(width).collect();
        last.reverse();
        let most = last.iter().flatten().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let marks = if self.ascii { BELOW_ASCII } else { BELOW };
        let mark = |value: &Option<f64>| match value {
            Some(v) if most > 0.0 => marks[((v / most * 7.0).round().max(0.0) as usize).min(7)],
            Some(_) => marks[0],
            None => ' ',
        };
        (last.iter().map(mark).collect(), most)
    }
}

/// How hot a share of the samples is.
pub fn heat(share: f64) -> Tone {
    match share {
        s if s >= 0.1 => Tone::Hot,
        s if s >= 0.02 => Tone::Warm,
        s if s < 0.0005 => Tone::Dim,
        _ => Tone::Plain,
    }
}

/// Columns that `text` takes on the screen.
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { Span::raw(text).width() }
}

/// `text` in exactly `columns` columns: cut off with an ellipsis, or padded.
pub fn fit(text: &str, columns: usize) -> String {
    let long = width(text);
    if long <= columns {
        return format!("{text}{}", " ".repeat(columns - long));
    }
    if columns == 0 {
        return String::new();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = width(c.encode_utf8(&mut [0; 4]));
        if used + wide > columns - 1 {
            break;
        }
        out.push(c);
        used += wide;
    }
    out.push('…');
    used += 1;
    out + &" ".repeat(columns.saturating_sub(used))
}

/// The same at the right edge.
pub fn fit_right(text: &str, columns: usize) -> String {
    let long = width(text);
    if long > columns { fit(text, columns) } else { " ".repeat(columns - long) + text }
}

/// `text` broken at blanks into lines of at most `columns` columns; long words are broken, too.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut word: Cow<str> = Cow::Borrowed(word);
        if used > 0 && used + 1 + width(&word) > columns {
            lines.push(String::new());
            used = 0;
        }
        while used == 0 && width(&word) > columns {
            let cut = word.char_indices().map(|(i, c)| (i, c.len_utf8()));
            let at = cut.take(columns).last().map_or(word.len(), |(i, n)| i + n);
            let rest = word[at..].to_owned();
            if rest.is_empty() {
                break;
            }
            if let Some(line) = lines.last_mut() {
                line.push_str(&word[..at]);
            }
            lines.push(String::new());
            word = Cow::Owned(rest);
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(&word);
            used += width(&word);
        }
    }
    lines
}

/// Puts lines into an area, one below the other, from line `top` on.
pub fn put(buffer: &mut Buffer, area: Rect, lines: &[Line<'_>], top: usize) {
    for (y, line) in (area.top()..area.bottom()).zip(lines.iter().skip(top)) {
        buffer.set_line(area.x, y, line, area.width);
    }
}

/// Puts prose into an area; what finds no room ends in an ellipsis.
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

/// Whatever is still no ASCII becomes something of the same width.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_exact_whatever_the_text() {
        for text in ["", "abc", "a longer text", "名前の長い関数", "é"] {
            for columns in 0..12 {
                assert_eq!(width(&fit(text, columns)), columns, "{text:?} in {columns}");
                assert_eq!(width(&fit_right(text, columns)), columns, "{text:?} in {columns}");
            }
        }
    }

    #[test]
    fn wrapped_text_fits_and_loses_nothing() {
        let text = "a few words and one_that_is_longer_than_the_line itself";
        for columns in 1..30 {
            let lines = wrap(text, columns);
            assert!(lines.iter().all(|l| width(l) <= columns), "{columns}: {lines:?}");
            let kept: String = lines.concat().split_whitespace().collect();
            assert_eq!(kept, text.replace(' ', ""), "{columns}");
        }
    }

    #[test]
    fn bars_and_sparklines_are_in_proportion() {
        let look = Look::default();
        assert_eq!(look.bar(0.5, 4), "██  ");
        assert_eq!(look.bar(0.03125, 4), "▏   ");
        assert_eq!(look.bar(f64::NAN, 2), "  ");
        let values = [Some(0.0), None, Some(3.5), Some(7.0)];
        assert_eq!(look.sparkline(values.into_iter(), 10), ("▁ ▅█".into(), 7.0));
        assert_eq!(look.sparkline(values.into_iter(), 1), ("█".into(), 7.0));
    }
}
