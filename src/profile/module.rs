//! Modules: files that code comes from.

use std::collections::HashMap;

/// What kind of thing code lies in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    #[default]
    Unknown,
}

impl Kind {
    /// What a mapping of user space is, by the name that the kernel gives it in `/proc/PID/maps`
    /// and in records (see proc_pid_maps(5)).
    pub fn of_path(path: &str) -> Self {
        /// Memory without a file, or whose file no one else can open.
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

    /// Whether places in it are addresses of the file (p_vaddr), not of memory.
    pub fn is_file_like(self) -> bool {
        matches!(self, Self::File | Self::Vdso)
    }
}

/// A module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Module {
    /// Path, or perf's name for it.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Build-id as recorded.
    pub build_id: Option<Vec<u8>>,
    /// Process, for anonymous modules.
    pub pid: Option<u32>,
    /// Of the kernel: a symbol and the address it had when it was recorded; the kernel moves at
    /// every boot. Of a kernel module: an empty name and where the module lay.
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
    /// By number.
    pub all: Vec<Module>,
    /// Numbers by identity: path, build-id and, without a file, process.
    numbers: HashMap<Module, usize>,
}

impl Modules {
    /// The number of `module`, a new one if it has not been seen.
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
    fn names_of_mappings_tell_what_they_are() {
        for (path, kind) in [
            ("/usr/bin/gzip", Kind::File),
            ("/opt/old (deleted)", Kind::File),
            ("[vdso]", Kind::Vdso),
            ("//anon", Kind::Anonymous),
            ("[anon:v8]", Kind::Anonymous),
            ("/memfd:jit (deleted)", Kind::Anonymous),
            ("[stack]", Kind::Anonymous),
            ("[vsyscall]", Kind::Unknown),
            ("[kernel.kallsyms]_text", Kind::Kernel),
        ] {
            assert_eq!(Kind::of_path(path), kind, "{path}");
        }
    }

    #[test]
    fn a_module_is_its_path_and_build_id() {
        let mut modules = Modules::default();
        let with = |id: u8| Module {
            path: "/bin/a".into(),
            kind: Kind::File,
            build_id: Some(vec![id]),
            ..Module::default()
        };
        assert_eq!(modules.number(with(1)), 0);
        assert_eq!(modules.number(with(2)), 1);
        assert_eq!(modules.number(with(1)), 0);
        assert_eq!(modules.all.len(), 2);
    }
}
