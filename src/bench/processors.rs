//! Chooses the processors that a batch may run on: one on each physical core, of those that the process may use.
//! Two blocks timed on one core would slow each other down.

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use pmu::machine::{Root, Topology};

/// The processors that this process may run on, one for each physical core. Never empty.
pub fn one_a_core() -> Vec<usize> {
    let chosen = choose(&Topology::read(&Root::system()), may_use);
    if chosen.is_empty() { vec![0] } else { chosen }
}

/// Whether this process may run on `cpu` (its affinity mask, which a cpuset limits).
pub fn may_use(cpu: usize) -> bool {
    match sched_getaffinity(Pid::from_raw(0)) {
        Ok(set) => cpu < CpuSet::count() && set.is_set(cpu).unwrap_or(false),
        // More processors than the mask has room for: the kernel decides when it comes to it.
        Err(_) => true,
    }
}

fn choose(topology: &Topology, may_use: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut cores = std::collections::BTreeSet::new();
    let allowed = topology.cpus.iter().filter(|c| may_use(c.id as usize));
    allowed.filter(|c| cores.insert((c.socket, c.core))).map(|c| c.id as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmu::machine::LogicalCpu;

    #[test]
    fn siblings_are_never_chosen_together() {
        // Two sockets of two cores of two threads, siblings far apart as Linux numbers them.
        let cpus = (0..8).map(|id| LogicalCpu { id, socket: id / 2 % 2, core: id % 2 }).collect();
        let topology = Topology { cpus, smt: true, sockets: 2, cores_per_socket: 2 };
        assert_eq!(choose(&topology, |_| true), [0, 1, 2, 3]);
        assert_eq!(choose(&topology, |cpu| cpu != 1), [0, 2, 3, 5], "a core's other thread");
        assert_eq!(choose(&topology, |cpu| cpu == 6), [6]);
        assert!(!one_a_core().is_empty());
    }
}
