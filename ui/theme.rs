//! Colours: which style a tone has in which theme. The terminal's own 16 colours, so that they suit its
//! background; nothing is told by colour alone.

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

/// What a text is like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Bold,
    Dim,
    /// The bottleneck, the hottest, what is violated.
    Hot,
    /// Flagged, warm, of note.
    Warm,
}

/// A choice of colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Theme {
    #[default]
    Default,
    Light,
    Contrast,
    Mono,
}

impl Theme {
    pub const ALL: [Theme; 4] = [Theme::Default, Theme::Light, Theme::Contrast, Theme::Mono];

    /// As the config file has it.
    pub fn name(self) -> &'static str {
        match self {
            Theme::Default => "default",
            Theme::Light => "light",
            Theme::Contrast => "contrast",
            Theme::Mono => "mono",
        }
    }

    /// For people.
    pub fn help(self) -> &'static str {
        match self {
            Theme::Default => "red and magenta, readable on dark and light backgrounds",
            Theme::Light => "red and blue, grey instead of faint: for light backgrounds",
            Theme::Contrast => {
                "white on blue and black on yellow, nothing faint: high contrast, safe for colour-blind eyes"
            }
            Theme::Mono => "no colours: bold, faint and reversed alone",
        }
    }

    /// The style of a tone.
    pub fn style(self, tone: Tone) -> Style {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        match (self, tone) {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const TONES: [Tone; 5] = [Tone::Plain, Tone::Bold, Tone::Dim, Tone::Hot, Tone::Warm];

    #[test]
    fn without_colours_there_are_none() {
        for tone in TONES {
            let style = Theme::Mono.style(tone);
            assert_eq!((style.fg, style.bg), (None, None), "{tone:?}");
        }
    }

    /// Red and green are what most colour-blind eyes confuse.
    #[test]
    fn the_contrast_theme_has_no_red_green_or_faint_text() {
        for tone in TONES {
            let style = Theme::Contrast.style(tone);
            let colours = [style.fg, style.bg];
            assert!(!colours.contains(&Some(Color::Red)) && !colours.contains(&Some(Color::Green)));
            assert!(!style.add_modifier.contains(Modifier::DIM), "{tone:?}");
        }
    }
}
