//! Two measurements, read and compared.

use super::queue::Queue;
use crate::settings::Settings;
use crate::tui::action::BackgroundResult;
use crate::tui::failure::{Failure, catch_panic};
use crate::tui::state::Searchable;
use engine::compared::files;
use profile::files::SearchPaths;
use std::path::PathBuf;
use std::sync::Arc;

/// Reads both files, and sends their comparison.
pub fn compare([a, b]: [PathBuf; 2], search: SearchPaths, settings: Arc<Settings>, queue: Queue) {
    std::thread::spawn(move || {
        let ask = settings.comparison(search);
        let found = catch_panic(|| files(settings.library, &ask, [&[a], &[b]]));
        let found = found.and_then(|read| read.map_err(Failure::Error));
        queue.send(BackgroundResult::Compared(found.map(Searchable::boxed)));
    });
}
