//! The style of each tone in each theme: the terminal's own 16 colours, so that they suit its background.
//! No information depends on colour only.

use crate::terminal::Theme;
use ratatui::style::{Color, Modifier, Style};

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
}
