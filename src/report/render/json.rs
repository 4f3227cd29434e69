//! Documents as JSON: indented, or one per line for a stream of them.

use serde::Serialize;
use tma::{Error, Result};

/// `document` as indented JSON with a line break at the end.
///
/// # Errors
/// It cannot be written as JSON.
pub fn pretty(document: &impl Serialize) -> Result<String> {
    ended(serde_json::to_string_pretty(document))
}

/// `document` as one line of JSON.
///
/// # Errors
/// It cannot be written as JSON.
pub fn line(document: &impl Serialize) -> Result<String> {
    ended(serde_json::to_string(document))
}

fn ended(text: serde_json::Result<String>) -> Result<String> {
    text.map(|t| t + "\n").map_err(|e| Error::failed("cannot write JSON").because(e))
}
