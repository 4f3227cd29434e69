//! Code by its addresses, as further runs are told what to look at.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Addresses of code (p_vaddr) by file.
pub type Places = Arc<BTreeMap<PathBuf, Vec<Range<u64>>>>;
