//! perf.data files: linux-perf-data as the container, the records and samples by our own decoder.

use super::recording::Recording;
use crate::{Error, Result};
use std::path::Path;

/// Reads a perf.data file, in file or pipe mode.
///
/// # Errors
/// It cannot be read, is no perf.data, or is damaged before its first record.
pub fn read(path: &Path) -> Result<Recording> {
    Err(Error::failed(format!("cannot read {}", path.display())))
}
