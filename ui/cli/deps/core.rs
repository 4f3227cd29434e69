//! The core whose dependencies are analysed, and its reorder buffer.

use crate::settings::Settings;
use engine::known::Known;
use isa::deps::Window;
use tma::Result;

/// A core with its reorder window.
pub struct CoreWindow {
    pub known: Known,
    /// Entries of the reorder buffer.
    pub entries: u32,
    /// Where that number is from.
    pub source: String,
}

impl CoreWindow {
    /// The core that the settings name, with `rob` entries if that is given.
    pub fn of(settings: &Settings, rob: Option<u32>) -> Result<Self> {
        let known = settings.known()?;
        let Window { entries, source } = Window::of(&known.core);
        Ok(match rob {
            Some(entries) => Self { known, entries, source: "as asked for".to_owned() },
            None => Self { known, entries, source },
        })
    }
}
