//! Recorded targets of jumps and calls.

use serde::{Deserialize, Serialize};
use tma::Address;

/// A recorded target of a jump or call whose edges the counts do not determine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetRow {
    /// Path of the file.
    pub module: String,
    /// Address of the jump or call.
    pub from: Address,
    /// Where it went.
    pub to: Address,
    /// How often it was recorded to do so.
    pub count: u64,
}
