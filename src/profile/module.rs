//! Modules: the files and other memory that code is mapped from.

use std::collections::HashMap;

/// An address in a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleAddress {
    /// Number of the module in [`Modules`].
    pub module: usize,
    /// Address as in the ELF file (p_vaddr); for modules without a file the address in memory; for a
    /// file that cannot be read or has changed since, the offset in it.
    pub address: u64,
}

/// Kind of module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModuleKind {
    /// An ELF file.
    File,
    /// The kernel.
    Kernel,
    /// A kernel module.
    KernelModule,
    /// The kernel's code in user space (vdso).
    Vdso,
    /// Anonymous memory: code of a JIT, possibly with a perf map file.
    Anonymous,
    /// A jitdump: code of a JIT; addresses are offsets in it.
    Jitdump,
    /// Unknown.
    #[default]
    Unknown,
}

impl ModuleKind {
    /// The kind of a user-space mapping, by its name in `/proc/PID/maps` and in records
    /// (proc_pid_maps(5)).
    pub fn of_path(path: &str) -> Self {
        /// Memory without a file, or with one that no other process can open.
        const ANONYMOUS: [&str; 8] = [
            "//anon",
            "/anon_hugepage",
            "/dev/zero",
            "/memfd:",
            "/SYSV",
            "[anon",
            "[stack",
            "anon_inode:",
        ];
        match path {
            "" | "[heap]" | "[uprobes]" => Self::Anonymous,
            _ if path.starts_with("[vdso") => Self::Vdso,
            _ if path.starts_with("[kernel.") => Self::Kernel,
            _ if ANONYMOUS.iter().any(|start| path.starts_with(start)) => Self::Anonymous,
            _ if path.starts_with('[') => Self::Unknown,
            _ => Self::File,
        }
    }

    /// Whether addresses in it are those of the file (p_vaddr), not of memory.
    pub fn is_file_like(self) -> bool {
        matches!(self, Self::File | Self::Vdso)
    }
}

/// A module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Module {
    /// Path, or perf's name for it.
    pub path: String,
    /// Kind.
    pub kind: ModuleKind,
    /// Build-id as recorded.
    pub build_id: Option<Vec<u8>>,
    /// Inode of its file, where another file has the same path and neither has a build-id.
    pub inode: Option<u64>,
    /// Process, for anonymous memory.
    pub pid: Option<u32>,
    /// For the kernel, which moves at every boot: a symbol and its address when recorded. For a
    /// kernel module: an empty name and the module's address.
    pub reference: Option<(String, u64)>,
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
    /// The modules, by number.
    pub all: Vec<Module>,
    /// Their numbers.
    numbers: HashMap<Module, usize>,
}

impl Modules {
    /// The number of `module`, a new one if it is not known yet.
    pub fn number(&mut self, module: Module) -> usize {
        if let Some(&number) = self.numbers.get(&module) {
            return number;
        }
        let number = self.all.len();
        self.all.push(module.clone());
        self.numbers.insert(module, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_mapping_follows_from_its_name() {
        for (path, kind) in [
            ("/usr/bin/gzip", ModuleKind::File),
            ("/opt/old (deleted)", ModuleKind::File),
            ("[vdso]", ModuleKind::Vdso),
            ("//anon", ModuleKind::Anonymous),
            ("[anon:v8]", ModuleKind::Anonymous),
            ("/memfd:jit (deleted)", ModuleKind::Anonymous),
            ("[stack]", ModuleKind::Anonymous),
            ("[vsyscall]", ModuleKind::Unknown),
            ("[kernel.kallsyms]_text", ModuleKind::Kernel),
        ] {
            assert_eq!(ModuleKind::of_path(path), kind, "{path}");
        }
    }

    #[test]
    fn a_module_is_its_path_and_build_id() {
        let mut modules = Modules::default();
        let with = |id: u8| Module {
            path: "/bin/a".into(),
            kind: ModuleKind::File,
            build_id: Some(vec![id]),
            ..Module::default()
        };
        assert_eq!(modules.number(with(1)), 0);
        assert_eq!(modules.number(with(2)), 1);
        assert_eq!(modules.number(with(1)), 0);
        assert_eq!(modules.all.len(), 2);
    }
}
