//! Online CPUs, and the cores and sockets they belong to.

use super::Root;
use std::collections::BTreeSet;

/// One online CPU (hardware thread).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogicalCpu {
    /// The kernel's number.
    pub id: u32,
    /// Socket (physical package).
    pub socket: u32,
    /// Core number inside the socket, as the kernel numbers them.
    pub core: u32,
}

/// The shape of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topology {
    /// Online CPUs, by number.
    pub cpus: Vec<LogicalCpu>,
    /// Whether several online CPUs share a core.
    pub smt: bool,
    /// Sockets with an online CPU; at least 1.
    pub sockets: usize,
    /// Cores with an online CPU, per socket; at least 1.
    pub cores_per_socket: usize,
}

impl Topology {
    /// Reads `/sys/devices/system/cpu`.
    pub fn read(root: &Root) -> Self {
        let base = "sys/devices/system/cpu";
        let online = root.text(format!("{base}/online")).unwrap_or_else(|| "0".into());
        let cpus: Vec<LogicalCpu> = parse_cpu_list(&online)
            .unwrap_or_else(|| vec![0])
            .into_iter()
            .map(|id| {
                let read = |file: &str| root.number(format!("{base}/cpu{id}/topology/{file}"));
                LogicalCpu {
                    id,
                    socket: read("physical_package_id").unwrap_or(0),
                    core: read("core_id").unwrap_or(id),
                }
            })
            .collect();
        let cores: BTreeSet<(u32, u32)> = cpus.iter().map(|c| (c.socket, c.core)).collect();
        let sockets: BTreeSet<u32> = cpus.iter().map(|c| c.socket).collect();
        let sockets = sockets.len().max(1);
        Self {
            smt: cores.len() < cpus.len(),
            cores_per_socket: (cores.len() / sockets).max(1),
            sockets,
            cpus,
        }
    }

    /// The online CPU numbered `id`.
    pub fn cpu(&self, id: u32) -> Option<LogicalCpu> {
        self.cpus.iter().copied().find(|c| c.id == id)
    }
}

/// The numbers of a kernel CPU list such as `0-3,8,10-11`; `None` if it is none.
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut all = BTreeSet::new();
    for part in text.trim().split(',').filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // The kernel's own limit is 8192; beyond 2^16 it is no CPU list.
        if last < first || last > 0xffff {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_as_the_kernel_writes_them() {
        assert_eq!(parse_cpu_list("0-2,8,10-11\n"), Some(vec![0, 1, 2, 8, 10, 11]));
        assert_eq!(parse_cpu_list(""), Some(vec![]));
        assert_eq!(parse_cpu_list("3-1"), None);
        assert_eq!(parse_cpu_list("0-99999999"), None);
        assert_eq!(parse_cpu_list("a"), None);
    }
}
