//! The part of the machine or the workload that counts belong to.

use std::fmt;

/// The part of the machine or the workload that a block was counted on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Kind of part.
    pub kind: ScopeKind,
    /// Its name in reports: `cpu3`, `S0-D0-C1`, `bash-4711`.
    pub name: String,
    /// The control group (`--for-each-cgroup`).
    pub cgroup: Option<String>,
}

/// Kind of a [`Scope`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScopeKind {
    /// All of it: only the control group is given.
    Whole,
    /// A logical CPU (`-A`).
    Cpu,
    /// A physical core (`--per-core`).
    Core,
    /// A die, cluster or cache (`--per-die`, `--per-cluster`, `--per-cache`).
    Die,
    /// A socket (`--per-socket`).
    Socket,
    /// A NUMA node (`--per-node`).
    Node,
    /// A thread (`--per-thread`).
    Thread,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match (&self.cgroup, self.name.is_empty()) {
            (Some(cgroup), true) => write!(f, "cgroup {cgroup}"),
            (Some(cgroup), false) => write!(f, " cgroup {cgroup}"),
            (None, _) => Ok(()),
        }
    }
}

/// Parses `CPU3`, `S0`, `S0-D0-C1`, `S0-D0-L3-ID0`, `N1`, `comm-4711`; `counts_cpus` if a number of
/// CPUs follows, so that it is no CPU or thread. `None` if it is no scope.
pub fn scope_of(name: &str, counts_cpus: bool) -> Option<Scope> {
    let made = |kind, name: &str| Some(Scope { kind, name: name.to_owned(), cgroup: None });
    if let Some(cpu) = name.strip_prefix("CPU")
        && is_whole(cpu)
    {
        return made(ScopeKind::Cpu, &format!("cpu{cpu}"));
    }
    if is_whole(name) && !counts_cpus {
        return made(ScopeKind::Cpu, &format!("cpu{name}"));
    }
    let parts: Vec<&str> = name.split('-').collect();
    let numbered = |part: &str, prefix: &str| part.strip_prefix(prefix).is_some_and(is_whole);
    match parts.as_slice() {
        [s] if numbered(s, "S") => made(ScopeKind::Socket, name),
        [n] if numbered(n, "N") => made(ScopeKind::Node, name),
        [s, c] if numbered(s, "S") && numbered(c, "C") => made(ScopeKind::Core, name),
        [s, d, c] if numbered(s, "S") && numbered(d, "D") && numbered(c, "C") => {
            made(ScopeKind::Core, name)
        }
        [s, d, ..] if numbered(s, "S") && (numbered(d, "D") || numbered(d, "L")) => {
            made(ScopeKind::Die, name)
        }
        [_, .., pid] if !counts_cpus && is_whole(pid) => made(ScopeKind::Thread, name),
        _ => None,
    }
}

/// Whether a field is a whole number.
pub(super) fn is_whole(field: &str) -> bool {
    !field.is_empty() && field.bytes().all(|b| b.is_ascii_digit())
}
