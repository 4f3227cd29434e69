//! Registers at the entries of blocks, in [`super::count::Count`].

use serde::{Deserialize, Serialize};
use tma::Address;

/// Which kind of block registers are recorded at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValuesAt {
    /// The entry of a function.
    Function,
    /// The head of a loop.
    Loop,
    /// Another block.
    #[default]
    Block,
}

/// Kind of a register's values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueKind {
    /// Always the same.
    Constant,
    /// A few different ones.
    Few,
    /// Addresses of mapped memory.
    Pointer,
    /// Most entries advance by `stride`.
    Range,
    /// Others.
    Spread,
    /// Not known.
    #[default]
    Unknown,
}

/// The registers of a block's sampled entries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ValueRow {
    /// Path of the file.
    pub module: String,
    /// Name of the function.
    pub function: String,
    /// First address of the block.
    pub block: Address,
    /// Kind of the block.
    pub of: ValuesAt,
    /// How often it was entered in the counted run; absent where that is not known.
    pub entries: Option<u64>,
    /// Entries whose registers were recorded, in a run of their own.
    pub sampled: u64,
    /// The general registers that are read later.
    pub registers: Vec<RegisterRow>,
    /// Why there are none, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why what it has is of different extents: a run was killed, say, and the others were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extents: Option<String>,
}

/// A register. Numbers are signed where 32 or 64 bits are read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RegisterRow {
    /// Its name, of as many bits as are read.
    pub register: String,
    /// Lower bits that are read.
    pub bits: u32,
    /// Kind of the values.
    pub kind: ValueKind,
    /// Value of `constant`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<i64>,
    /// Values of `few`, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueShare>,
    /// By how much most entries differ from the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride: Option<i64>,
    /// Their share, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride_share: Option<f64>,
    /// Alignment of a pointer: the largest power of two that divides all its values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alignment: Option<u64>,
    /// Memory that a pointer points to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<RegionShare>,
    /// Lowest value seen of `range` and `spread`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// The median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<i64>,
    /// The highest value that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
}

/// A value, and how many of the sampled entries had it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ValueShare {
    /// The value.
    pub value: i64,
    /// 0 to 1.
    pub share: f64,
}

/// A part of memory, and how many of the sampled entries had a pointer to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionShare {
    /// `stack`, `heap`, `anonymous memory`, `null`, `unmapped`, or the name of a file.
    pub region: String,
    /// 0 to 1.
    pub share: f64,
}
