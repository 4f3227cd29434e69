//! Functions and source lines.

/// A function, or a range of code without a symbol.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    /// Demangled name; for code without a symbol its file and address (`sort+0x4327`).
    pub name: String,
    /// The name without parameters and return type, as `perf report` prints it.
    pub short: String,
    /// Name in the symbol table, if there is one.
    pub linkage: Option<String>,
    /// First address (p_vaddr).
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// Whether a symbol gives name and range; otherwise the range is inferred from unwind tables or
    /// sections.
    pub named: bool,
}

/// A source line, and the function it was inlined from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// Source file.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Inlined function that the line belongs to, demangled; `None` if not inlined.
    pub inlined: Option<String>,
}
