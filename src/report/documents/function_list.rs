//! Functions of a program to choose from, `tdtool.functions/1`.

use serde::Serialize;
use tma::Address;

/// The largest functions of a file: the document `tdtool.functions/1`.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionList {
    /// `tdtool.functions/1`.
    pub schema: &'static str,
    /// The file.
    pub file: String,
    /// How many functions it has.
    pub count: usize,
    /// The largest of them, by size.
    pub functions: Vec<FunctionLine>,
}

/// A function.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionLine {
    /// Its name, demangled; none where the file has no symbol for it.
    pub name: Option<String>,
    /// Its name in the symbol table.
    pub symbol: Option<String>,
    /// Its address (p_vaddr).
    pub start: Address,
    /// Its size in bytes.
    pub bytes: u64,
}
