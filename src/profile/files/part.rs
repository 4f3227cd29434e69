//! The files that belong to a build-id.

/// A file that belongs to a build-id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The program.
    Program,
    /// Its debug file.
    Debug,
    /// A kernel's symbols, or its page in user space.
    Symbols,
    Vdso,
}

impl Part {
    /// Its name in caches of perf.
    pub fn of_perf(self) -> &'static str {
        match self {
            Self::Program => "elf",
            Self::Debug => "debug",
            Self::Symbols => "kallsyms",
            Self::Vdso => "vdso",
        }
    }

    /// Its name on servers and in caches of debuginfod (debuginfod(8)).
    pub fn of_debuginfod(self) -> Option<&'static str> {
        match self {
            Self::Program => Some("executable"),
            Self::Debug => Some("debuginfo"),
            Self::Symbols | Self::Vdso => None,
        }
    }
}
