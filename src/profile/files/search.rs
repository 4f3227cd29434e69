//! Folders to search for programs and debug files.

use std::path::PathBuf;

/// Folders to search for programs and debug files.
#[derive(Debug, Clone, Default)]
pub struct SearchPaths {
    /// Folders with programs (as `perf --symfs`), tried first: a program's whole path below them,
    /// then its name alone.
    pub roots: Vec<PathBuf>,
    /// Programs wherever they lie: each stands for the modules with its build-id, or with its file name if they
    /// were recorded without one. Tried before everything else.
    pub programs: Vec<PathBuf>,
    /// Folders with debug files; `/usr/lib/debug` if empty.
    pub debug: Vec<PathBuf>,
}
