//! How things are drawn: tones, bars and sparklines, in Unicode or ASCII.

use super::tone::{Tone, style};
use super::width::fit;
use crate::terminal::Theme;
use ratatui::style::Style;
use ratatui::text::Span;
use report::format;
use std::borrow::Cow;

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

#[cfg(test)]
mod tests {
    use super::*;

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
