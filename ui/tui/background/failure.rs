//! Errors and panics as text on the screen.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`; a panic in it becomes a text.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|t| (*t).to_owned()));
        format!("internal error: {}", text.unwrap_or_else(|| "a panic".into()))
    })
}

/// What failed, why, and what to do, in one paragraph.
pub fn paragraph(error: &tma::Error) -> String {
    match error.remedy() {
        Some(remedy) => format!("{error}. Try: {remedy}"),
        None => error.to_string(),
    }
}
