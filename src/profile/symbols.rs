//! Functions, lines and inlined functions of modules; lazily, cached.

use super::module::Module;
use super::space::Place;
use std::path::PathBuf;

/// A function, or what stands for one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    /// Demangled name; of stripped code its section and range (`.text+0x1a0`).
    pub name: String,
    /// Name as in the symbol table, where there is one.
    pub linkage: Option<String>,
    /// First address, p_vaddr.
    pub start: u64,
    /// Behind its last address.
    pub end: u64,
    /// Whether a symbol says so; otherwise the range is guessed from what is around.
    pub named: bool,
}

/// A line of source, and the function it was inlined from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// File.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Function that it was written in, demangled, where it was inlined.
    pub inlined: Option<String>,
}

/// Where symbols are looked for.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// Folders with programs (as `perf --symfs`), tried first.
    pub roots: Vec<PathBuf>,
    /// Folders with debug files; the usual ones if empty.
    pub debug: Vec<PathBuf>,
}

/// Why there is nothing to annotate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// No such file.
    NoFile(String),
    /// The file has changed since: build-ids (recorded, found).
    Changed(String, String),
    /// It cannot be read as an ELF file, for this reason.
    Unreadable(String),
    /// It has no code at that address.
    NoCode,
}

/// Symbols of all modules.
#[derive(Debug, Default)]
pub struct Symbols {
    search: Search,
}

impl Symbols {
    /// Looks in these places.
    pub fn new(search: Search) -> Self {
        Self { search }
    }

    /// The function at a place of `module`.
    pub fn function(&mut self, module: &Module, place: Place) -> Option<Function> {
        let _ = (module, place, &self.search);
        None
    }

    /// The line at a place, the innermost inlined function first.
    pub fn lines(&mut self, module: &Module, place: Place) -> Vec<Line> {
        let _ = (module, place);
        Vec::new()
    }

    /// The code from `start` to `end` (p_vaddr).
    ///
    /// # Errors
    /// Why there is none.
    pub fn code(&mut self, module: &Module, start: u64, end: u64) -> Result<Vec<u8>, Gap> {
        let _ = (start, end);
        Err(Gap::NoFile(module.path.clone()))
    }

    /// What is wrong with a module, if anything: said once in a report.
    pub fn gap(&mut self, module: &Module) -> Option<Gap> {
        let _ = module;
        None
    }
}
