//! Intel's tables.

use crate::Generated;
use anyhow::Result;
use std::path::Path;

/// All Intel tables.
pub fn tables(_vendor: &Path) -> Result<Vec<Generated>> {
    Ok(Vec::new())
}

/// Compares the tables with the vendor's expanded formulas.
pub fn verify(_vendor: &Path) -> Result<usize> {
    Ok(0)
}
