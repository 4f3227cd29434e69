//! Draws tones in each theme, bars and sparklines, in Unicode or ASCII; lays out text in columns: measured, cut
//! off, padded, wrapped.
//!
//! Colours are the terminal's own 16, so that they suit its background. No information depends on colour only.

use crate::terminal::Theme;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;
use report::format;
use std::borrow::Cow;

/// The weight of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Bold,
    Dim,
    /// The bottleneck, the hottest row, a violated assumption.
    Hot,
    /// Flagged nodes, warm rows, states.
    Warm,
}

/// The style of a tone in a theme.
pub fn style(theme: Theme, tone: Tone) -> Style {
    let plain = Style::new();
    let bold = plain.add_modifier(Modifier::BOLD);
    match (theme, tone) {
        (_, Tone::Plain) => plain,
        (_, Tone::Bold) => bold,
        (Theme::Contrast, Tone::Dim) => plain,
        (Theme::Light, Tone::Dim) => plain.fg(Color::DarkGray),
        (_, Tone::Dim) => plain.add_modifier(Modifier::DIM),
        (Theme::Mono, Tone::Hot) => bold,
        (Theme::Mono, Tone::Warm) => plain,
        (Theme::Contrast, Tone::Hot) => bold.fg(Color::White).bg(Color::Blue),
        (Theme::Contrast, Tone::Warm) => plain.fg(Color::Black).bg(Color::Yellow),
        (_, Tone::Hot) => bold.fg(Color::Red),
        (Theme::Light, Tone::Warm) => plain.fg(Color::Blue),
        (_, Tone::Warm) => plain.fg(Color::Magenta),
    }
}

/// Eighths of a cell, from the left and from below.
const LEFT: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
const BELOW: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Their substitutes in ASCII.
const BELOW_ASCII: [char; 8] = ['_', '.', ',', '-', '=', '+', '*', '#'];

/// Theme and characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    pub theme: Theme,
    /// ASCII characters only.
    pub ascii: bool,
}

impl Look {
    /// The style of a tone.
    pub fn style(self, tone: Tone) -> Style {
        style(self.theme, tone)
    }

    /// A text in a tone.
    pub fn span(self, text: impl Into<String>, tone: Tone) -> Span<'static> {
        Span::styled(text.into(), self.style(tone))
    }

    /// `text`, converted to ASCII if only that is wanted.
    pub fn prose(self, text: &str) -> Cow<'_, str> {
        if self.ascii { Cow::Owned(format::ascii(text)) } else { Cow::Borrowed(text) }
    }

    /// `±`, or its substitute.
    pub fn plus_minus(self) -> &'static str {
        if self.ascii { "+-" } else { "±" }
    }

    /// A bar for a share, `width` cells long at 1.
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

    /// The last `width` values as columns, scaled to their maximum, and that maximum.
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

/// Columns that `text` takes.
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

/// As [`fit`], of a name: names of C++ and Rust differ at both ends, so the middle is left out.
pub fn fit_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns || columns < 4 {
        return fit(text, columns);
    }
    let last = (columns - 1) / 2;
    let mut tail = Vec::new();
    let mut used = 0;
    for c in text.chars().rev() {
        let wide = width(c.encode_utf8(&mut [0; 4]));
        if used + wide > last {
            break;
        }
        tail.push(c);
        used += wide;
    }
    let head = fit(text, columns - used);
    let tail: String = tail.into_iter().rev().collect();
    // A wide character that is cut off leaves a blank.
    let (head, blank) = head.split_at(head.trim_end().len());
    format!("{head}{tail}{blank}")
}

/// `text` in exactly `columns` columns, as [`fit`], aligned to the right.
pub fn fit_right(text: &str, columns: usize) -> String {
    let long = width(text);
    if long > columns { fit(text, columns) } else { " ".repeat(columns - long) + text }
}

/// A number aligned to the right: `text`, or three digits of it where `text` has no room.
pub fn fit_number(text: &str, value: f64, columns: usize) -> String {
    match width(text) <= columns {
        true => fit_right(text, columns),
        false => fit_right(&format::number(value), columns),
    }
}

/// `text` broken at blanks into lines of at most `columns` columns; longer words are broken too.
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

#[cfg(test)]
mod tests {
    use super::*;

    const TONES: [Tone; 5] = [Tone::Plain, Tone::Bold, Tone::Dim, Tone::Hot, Tone::Warm];

    #[test]
    fn the_mono_theme_has_no_colours() {
        for tone in TONES {
            let style = style(Theme::Mono, tone);
            assert_eq!((style.fg, style.bg), (None, None), "{tone:?}");
        }
    }

    /// Most colour-blind people confuse red and green.
    #[test]
    fn the_contrast_theme_has_no_red_green_or_faint_text() {
        for tone in TONES {
            let style = style(Theme::Contrast, tone);
            let colours = [style.fg, style.bg];
            assert!(!colours.contains(&Some(Color::Red)) && !colours.contains(&Some(Color::Green)));
            assert!(!style.add_modifier.contains(Modifier::DIM), "{tone:?}");
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

    #[test]
    fn columns_are_exact_whatever_the_text() {
        for text in ["", "abc", "a longer text", "名前の長い関数", "é"] {
            for columns in 0..12 {
                assert_eq!(width(&fit(text, columns)), columns, "{text:?} in {columns}");
                assert_eq!(width(&fit_right(text, columns)), columns, "{text:?} in {columns}");
                assert_eq!(width(&fit_middle(text, columns)), columns, "{text:?} in {columns}");
            }
        }
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(fit_middle("std::vector::push_back", 12), "std::v…_back");
        assert_eq!(fit_middle("main", 6), "main  ");
    }

    #[test]
    fn wrapped_text_fits_and_loses_nothing() {
        let text = "a few words and one_that_is_longer_than_the_line itself";
        for columns in 1..30 {
            let lines = wrap(text, columns);
            assert!(lines.iter().all(|l| width(l) <= columns), "{columns}: {lines:?}");
            let letters: String = lines.concat().split_whitespace().collect();
            assert_eq!(letters, text.replace(' ', ""), "{columns}");
        }
    }
}
