//! The process with most samples.

use crate::address_space::AddressSpaces;
use rustc_hash::FxHashMap;

/// A process, by its samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Busiest {
    /// Its number.
    pub pid: u32,
    /// The last name of its first thread; empty if unknown.
    pub name: String,
    /// Share of the samples.
    pub share: f64,
}

/// The samples of each process.
#[derive(Debug, Default)]
pub(super) struct Processes(FxHashMap<u32, f64>);

impl Processes {
    /// Adds a sample with this weight.
    pub fn add(&mut self, pid: u32, weight: f64) {
        *self.0.entry(pid).or_default() += weight;
    }

    /// The one that has most, without the idle task.
    pub fn busiest(&self, spaces: &AddressSpaces) -> Option<Busiest> {
        let all: f64 = self.0.values().sum();
        let busy = self.0.iter().filter(|(pid, _)| **pid != 0);
        // Ties go to the lowest pid, whatever the order of the map.
        let (pid, own) = busy.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)))?;
        let name = spaces.thread_name(*pid, *pid).unwrap_or_default().to_owned();
        Some(Busiest { pid: *pid, name, share: own / all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::SearchPaths;
    use crate::record::Record;

    #[test]
    fn the_idle_task_is_no_process() {
        let mut spaces = AddressSpaces::new(SearchPaths::default(), &[]);
        let mut processes = Processes::default();
        assert_eq!(processes.busiest(&spaces), None);
        processes.add(0, 6.0);
        assert_eq!(processes.busiest(&spaces), None);
        let name = "work".to_owned();
        spaces.apply(&Record::Name { pid: 7, tid: 7, name, exec: true, time: None });
        for (pid, weight) in [(7, 2.0), (8, 1.0), (7, 1.0)] {
            processes.add(pid, weight);
        }
        let found = Busiest { pid: 7, name: "work".to_owned(), share: 0.3 };
        assert_eq!(processes.busiest(&spaces), Some(found));
    }
}
