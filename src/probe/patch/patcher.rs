//! What is done at the events of the command: files are patched as they are mapped, counts become
//! atomic when there are several tasks, the code is looked at before a process ends.

use super::instance::Instance;
use super::probes::Probes;
use super::target::Target;
use crate::process::{Follower, MOST_CALLS, Memory, Stopped, mappings};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A process of the command.
struct Process<P: Probes> {
    /// By target: whether it was found, patched or not.
    found: Vec<bool>,
    instances: Vec<Rc<Instance<P>>>,
    /// Counts are atomic.
    is_locked: bool,
}

impl<P: Probes> Default for Process<P> {
    fn default() -> Self {
        Self { found: Vec::new(), instances: Vec::new(), is_locked: false }
    }
}

impl<P: Probes> Clone for Process<P> {
    fn clone(&self) -> Self {
        let Self { found, instances, is_locked } = self;
        Self { found: found.clone(), instances: instances.clone(), is_locked: *is_locked }
    }
}

/// The patched processes of a command.
pub struct Patcher<P: Probes> {
    /// What is put into the code.
    pub probes: P,
    /// The files.
    pub targets: Vec<Target>,
    processes: BTreeMap<i32, Process<P>>,
    /// All that were ever patched, also of processes that have ended.
    pub instances: Vec<Rc<Instance<P>>>,
    /// By target: why a process with it was not counted whole.
    pub refused: Vec<Vec<String>>,
}

impl<P: Probes> Patcher<P> {
    /// Nothing is patched yet.
    pub fn new(probes: P, targets: Vec<Target>) -> Self {
        let refused = targets.iter().map(|_| Vec::new()).collect();
        Self { probes, targets, processes: BTreeMap::new(), instances: Vec::new(), refused }
    }

    fn refuse(&mut self, target: usize, why: String) {
        if !self.refused[target].contains(&why) {
            self.refused[target].push(why);
        }
    }
}

impl<P: Probes> Follower for Patcher<P> {
    fn tick(&mut self) {
        self.probes.tick();
    }

    fn mapped(&mut self, stopped: &Stopped) -> bool {
        let mut process = self.processes.remove(&stopped.process).unwrap_or_default();
        process.found.resize(self.targets.len(), false);
        let mappings = stopped.mappings();
        for number in 0..self.targets.len() {
            let target = &self.targets[number];
            let Ok(opened) = &target.opened else { continue };
            if process.found[number] {
                continue;
            }
            let Some(address) = opened.image.find(&mappings, opened.anchor.1) else { continue };
            process.found[number] = true;
            let common = process.instances.first().map(|instance| &*instance.shared);
            let how = (process.is_locked, common.filter(|_| P::IS_COMMON));
            let of = (number, target);
            match Instance::patch(&self.probes, stopped, of, opened, address, how) {
                Err(why) => self.refuse(number, why),
                Ok(instance) => {
                    let instance = Rc::new(instance);
                    self.probes.patched(&instance.shared);
                    process.instances.push(Rc::clone(&instance));
                    self.instances.push(instance);
                }
            }
        }
        let open = |(target, found): (&Target, &bool)| target.opened.is_ok() && !found;
        let any_left = self.targets.iter().zip(&process.found).any(open);
        self.processes.insert(stopped.process, process);
        any_left
    }

    fn created(&mut self, parent: i32, process: i32) {
        let Some(of) = self.processes.get_mut(&parent) else { return };
        let was_locked = std::mem::replace(&mut of.is_locked, true);
        let copy = of.clone();
        // A new process has a copy of the code as it is before this.
        let mut memories = vec![parent, process];
        memories.dedup();
        for id in memories.into_iter().filter(|_| !was_locked) {
            if let Ok(memory) = Memory::open(id) {
                copy.instances.iter().for_each(|instance| instance.lock(&memory));
            }
        }
        self.processes.entry(process).or_insert(copy);
    }

    fn executed(&mut self, process: i32) {
        self.processes.remove(&process);
    }

    fn ending(&mut self, process: i32) {
        let Some(of) = self.processes.get(&process).cloned() else { return };
        if let Ok(memory) = Memory::open(process) {
            for instance in &of.instances {
                if !instance.is_intact(&memory) {
                    self.refuse(instance.target, "the program has changed its own code".to_owned());
                }
            }
        }
        if of.found.iter().all(|found| *found) {
            return;
        }
        let mappings = mappings(process);
        for number in 0..self.targets.len() {
            let Ok(opened) = &self.targets[number].opened else { continue };
            let is_found = of.found.get(number).is_some_and(|found| *found);
            if !is_found && opened.image.find(&mappings, opened.anchor.1).is_some() {
                let why = format!("it was mapped after {MOST_CALLS} system calls");
                self.refuse(number, why);
            }
        }
    }
}
