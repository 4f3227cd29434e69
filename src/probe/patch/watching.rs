//! Changes of a live process at the beginning and the end of a window.

use super::instance::Instance;
use super::mapped::Mapped;
use super::patched::Condition;
use super::patcher::{Patcher, Process};
use super::prepared::Prepared;
use super::probes::Probes;
use super::target::Target;
use super::unprobed::Unprobed;
use crate::process::{Tracee, Watcher};
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Most pages with trampolines that are written while a live process is stopped: about a
/// millisecond.
const FEW: usize = 200;

impl<P: Probes> Watcher for Patcher<P> {
    fn is_current(&self, tracee: &Tracee) -> bool {
        let (mappings, memory) = (tracee.mappings(), tracee.memory());
        let is_current = |(target, prepared): (&Target, &Option<Result<Prepared<P>, Unprobed>>)| {
            let address = target.address(&mappings);
            match (prepared, address, &memory) {
                (None, address, _) => address.is_none(),
                (Some(Ok(prepared)), Some(address), Ok(memory)) => {
                    prepared.is_current(address, &mappings, memory)
                }
                (Some(prepared), address, _) => address.is_some() && prepared.is_err(),
            }
        };
        self.targets.iter().zip(&self.prepared).all(is_current)
    }

    fn reserve(&mut self, tracee: &Tracee) -> bool {
        let pages: usize = self.prepared.iter().flatten().flatten().map(Prepared::pages).sum();
        let Some(memory) = tracee.memory().ok().filter(|_| pages > FEW && !P::IS_COMMON) else {
            return false;
        };
        for prepared in self.prepared.iter_mut().flatten() {
            if let Ok(Err(why)) = prepared.as_mut().map(|one| one.map(tracee, &memory, None)) {
                *prepared = Err(why);
            }
        }
        self.early = Some((tracee.process, memory));
        true
    }

    fn fill(&mut self, most: Duration) -> bool {
        let end = Some(Instant::now() + most);
        let Some((_, memory)) = &self.early else { return true };
        for prepared in self.prepared.iter_mut().flatten() {
            match prepared.as_mut().map(|one| one.fill(memory, end)) {
                Ok(Ok(true)) | Err(_) => {}
                Ok(Ok(false)) => return false,
                Ok(Err(why)) => {
                    self.unused.extend(prepared.as_mut().ok().and_then(Prepared::unused));
                    *prepared = Err(why);
                }
            }
        }
        true
    }

    fn release(&mut self, tracee: &Tracee) -> usize {
        let prepared = self.prepared.iter_mut().flatten().flatten();
        let all = prepared.filter_map(Prepared::unused).chain(self.unused.drain(..));
        let all: Vec<Mapped> = all.collect();
        match tracee.memory() {
            Ok(memory) => all.into_iter().map(|one| one.unmap(tracee, &memory)).sum(),
            Err(_) => all.len(),
        }
    }

    fn may_return(&self, address: u64) -> bool {
        let mut all = self.processes.values().flat_map(|process| &process.instances);
        let mut prepared = self.prepared.iter().flatten().flatten();
        !all.any(|instance| instance.code.is_inside(address))
            && !prepared.any(|prepared| prepared.is_inside(address))
    }

    fn unused(&self, process: i32) -> Option<Vec<Range<u64>>> {
        let Some(Process { instances, memory: Some(memory), .. }) = self.processes.get(&process)
        else {
            return Some(Vec::new());
        };
        let is_gone = instances.iter().all(|instance| instance.code.is_gone(memory));
        is_gone.then(|| instances.iter().flat_map(|instance| &instance.ranges).cloned().collect())
    }

    fn leave(&mut self) {
        // A child of vfork(2) has the memory of its parent, whose code is already restored.
        let mut restored: Vec<*const Instance<P>> = Vec::new();
        let all: Vec<Process<P>> = self.processes.values().cloned().collect();
        for process in all {
            let Some(memory) = &process.memory else { continue };
            for instance in &process.instances {
                let condition = instance.code.restore(memory);
                let is_first = !restored.contains(&Rc::as_ptr(instance));
                restored.push(Rc::as_ptr(instance));
                if is_first || condition != Condition::Changed {
                    self.judge(instance.target, condition);
                }
            }
        }
        self.is_restored = true;
    }
}
