//! The core whose dependencies are analysed, and its reorder buffer.

use crate::settings::Settings;
use engine::core_model::CoreModel;
use isa::deps::Window;
use tma::Result;

/// A core with its reorder window.
pub struct CoreWindow {
    pub model: CoreModel,
    /// Entries of the reorder buffer.
    pub entries: u32,
    /// Where that number is from.
    pub source: String,
}

impl CoreWindow {
    /// The core that the settings name, with `rob` entries if that is given.
    pub fn of(settings: &Settings, rob: Option<u32>) -> Result<Self> {
        let model = settings.core_model()?;
        let Window { entries, source } = Window::of(&model.core);
        Ok(match rob {
            Some(entries) => Self { model, entries, source: "--rob".to_owned() },
            None => Self { model, entries, source },
        })
    }
}
