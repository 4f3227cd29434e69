//! The themes that a config file can choose.

use serde::Deserialize;

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

    /// Its name in a config file.
    pub fn name(self) -> &'static str {
        match self {
            Theme::Default => "default",
            Theme::Light => "light",
            Theme::Contrast => "contrast",
            Theme::Mono => "mono",
        }
    }

    /// Description of its colours.
    pub fn help(self) -> &'static str {
        match self {
            Theme::Default => "red and magenta, for dark and light backgrounds",
            Theme::Light => "red and blue, grey instead of faint, for light backgrounds",
            Theme::Contrast => {
                "white on blue and black on yellow, nothing faint: high contrast, for colour-blind users too"
            }
            Theme::Mono => "no colours: only bold, faint and reversed",
        }
    }
}
