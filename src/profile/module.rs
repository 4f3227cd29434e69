//! Modules: files that code comes from.

/// What kind of thing code lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// An ELF file.
    File,
    /// The kernel.
    Kernel,
    /// A kernel module.
    KernelModule,
    /// The kernel's page of code in user space.
    Vdso,
    /// Anonymous memory: a JIT, perhaps with a perf map file.
    Anonymous,
    /// Nothing is known to lie there.
    Unknown,
}

/// A module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Path, or perf's name for it.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Build-id as recorded.
    pub build_id: Option<Vec<u8>>,
    /// Process, for anonymous modules.
    pub pid: Option<u32>,
}

impl Module {
    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().filter(|n| !n.is_empty()).unwrap_or(&self.path)
    }
}

/// All modules of a recording.
#[derive(Debug, Default)]
pub struct Modules {
    /// By number.
    pub all: Vec<Module>,
}
