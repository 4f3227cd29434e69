//! Reacts to the events of a command: files are patched when mapped, counts are separated or made atomic when there
//! are several tasks, code is checked before a process ends, counters are read after its end.

use super::instance::{Instance, Trampolines};
use super::mapped::Mapped;
use super::patched::Condition;
use super::prepared::Prepared;
use super::probes::Probes;
use super::target::{MappedTarget, Target, Work};
use super::tasks::{Mode, Tasks};
use super::unprobed::Unprobed;
use crate::process::{
    Created, Followed, Follower, Memory, Tracee, change, follow, mappings, shares,
};
use nix::errno::Errno;
use pmu::Command;
use pmu::perf::Signals;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use tma::Result;

/// Most images whose trampolines are reported.
const MOST_MAPS: usize = 16;

/// A process of the command.
pub(super) struct Process<P: Probes> {
    /// By target: whether its mapping was found, patched or not.
    found: Vec<bool>,
    pub instances: Vec<Rc<Instance<P>>>,
    /// Its memory, opened before its id could be reused.
    pub memory: Option<Rc<Memory>>,
    mode: Mode,
    tasks: Tasks,
}

impl<P: Probes> Default for Process<P> {
    fn default() -> Self {
        let (mode, tasks) = (Mode::default(), Tasks::default());
        Self { found: Vec::new(), instances: Vec::new(), memory: None, mode, tasks }
    }
}

impl<P: Probes> Clone for Process<P> {
    fn clone(&self) -> Self {
        let Self { found, instances, memory, mode, tasks } = self;
        let (found, instances, tasks) = (found.clone(), instances.clone(), tasks.clone());
        Self { found, instances, memory: memory.clone(), mode: *mode, tasks }
    }
}

/// The patched processes of a command.
pub struct Patcher<P: Probes> {
    /// The kind of probes.
    pub probes: P,
    /// The files.
    pub targets: Arc<[Target]>,
    pub(super) processes: BTreeMap<i32, Process<P>>,
    /// Tasks that have not run yet → base of gs.
    bases: BTreeMap<i32, u64>,
    /// Trampolines of the first images.
    pub trampolines: Vec<Trampolines>,
    /// By target: why a process was not fully probed.
    pub refused: Vec<Vec<Unprobed>>,
    /// By target: instructions (p_vaddr) interrupted by a signal of the processor → signal, number
    /// of times.
    pub faults: Vec<BTreeMap<u64, (i32, u64)>>,
    /// By target: probes prepared for a live process.
    pub(super) prepared: Vec<Option<std::result::Result<Prepared<P>, Unprobed>>>,
    /// Removed probes of earlier runs.
    pub restored: usize,
    /// Files with code in processes that have ended.
    pub files: BTreeSet<PathBuf>,
    /// A live process whose code is not patched yet, with its memory.
    pub(super) early: Option<(i32, Memory)>,
    /// Mappings in it that cannot be used.
    pub(super) unused: Vec<Mapped>,
    /// The code of all processes is restored: it is not checked any more.
    pub(super) is_restored: bool,
    /// The analysis of mapped files.
    work: Arc<Work>,
}

impl<P: Probes> Patcher<P> {
    /// A patcher without processes.
    pub fn new(probes: P, targets: Arc<[Target]>) -> Self {
        let refused = targets.iter().map(|_| Vec::new()).collect();
        let faults = targets.iter().map(|_| BTreeMap::new()).collect();
        let (processes, trampolines, prepared) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self {
            probes,
            targets,
            processes,
            bases: BTreeMap::new(),
            trampolines,
            refused,
            faults,
            prepared,
            restored: 0,
            is_restored: false,
            files: BTreeSet::new(),
            early: None,
            unused: Vec::new(),
            work: Arc::default(),
        }
    }

    /// Patches the command from its start and follows it to its end. A signal also ends the
    /// analysis, during which the command is stopped.
    pub fn follow(&mut self, command: &Command, signals: &Signals) -> Result<Followed> {
        self.follow_after(command, signals, &mut |_| Ok(()))
    }

    /// As [`Patcher::follow`]; `before` is called with the process before it starts.
    ///
    /// # Errors
    /// As [`Patcher::follow`], and those of `before`.
    pub fn follow_after(
        &mut self,
        command: &Command,
        signals: &Signals,
        before: &mut dyn FnMut(i32) -> Result<()>,
    ) -> Result<Followed> {
        let work = Arc::clone(&self.work);
        signals.during(|| work.cancel(), || follow(command, self, signals, before))
    }

    /// A patcher for a live process, with the probes prepared by target.
    pub fn live(
        probes: P,
        targets: Arc<[Target]>,
        prepared: Vec<Option<std::result::Result<Prepared<P>, Unprobed>>>,
    ) -> Self {
        Self { prepared, ..Self::new(probes, targets) }
    }

    fn refuse(&mut self, target: usize, why: Unprobed) {
        if !self.refused[target].contains(&why) {
            self.refused[target].push(why);
        }
    }

    /// Refuses all files that were patched in a process.
    fn refuse_all(&mut self, process: i32, why: &Unprobed) {
        let Some(state) = self.processes.get(&process) else { return };
        let targets: Vec<usize> = state.instances.iter().map(|one| one.target).collect();
        targets.into_iter().for_each(|target| self.refuse(target, why.clone()));
    }

    /// Changes the mode of counting in all processes with these tasks.
    fn change(&mut self, tasks: &Tasks, mode: Mode) {
        let Some(prefixes) = mode.prefixes() else { return };
        let mut refused = Vec::new();
        for state in self.processes.values_mut().filter(|state| state.tasks.are(tasks)) {
            state.mode = mode;
            for (instance, memory) in state.instances.iter().zip(state.memory.iter().cycle()) {
                let why = instance.change(memory, prefixes).err();
                refused.extend(why.map(|why| (instance.target, why)));
            }
        }
        refused.into_iter().for_each(|(target, why)| self.refuse(target, why));
    }

    /// Refuses a target if the condition of its code falsifies counts.
    pub(super) fn judge(&mut self, target: usize, condition: Condition) {
        match condition {
            Condition::Patched | Condition::Gone => {}
            Condition::Changed => self.refuse(target, Unprobed::Changed),
            Condition::Writable => self.refuse(target, Unprobed::Writable),
            Condition::Unmapped => self.refuse(target, Unprobed::Closed),
        }
    }

    /// A process does not use its shared memory any more; with the last process it is read.
    fn forget(&mut self, process: i32) {
        let Some(state) = self.processes.remove(&process) else { return };
        for instance in state.instances {
            let target = instance.target;
            let Ok(instance) = Rc::try_unwrap(instance) else { continue };
            let (file, probes) = (&self.targets[target], instance.code.jumps());
            let Instance { plans, shared, bias, .. } = instance;
            self.probes.placed(file, &shared, bias);
            if let Err(why) = self.probes.closed(target, file, plans, &shared, probes) {
                self.refuse(target, why);
            }
        }
    }

    /// Reads the shared memory of all processes that still run.
    pub fn finish(&mut self) {
        for process in self.processes.keys().copied().collect::<Vec<_>>() {
            self.forget(process);
        }
    }
}

impl<P: Probes> Follower for Patcher<P> {
    fn tick(&mut self) {
        self.probes.tick();
    }

    fn mapped(&mut self, tracee: &Tracee) -> bool {
        let mut process = self.processes.remove(&tracee.process).unwrap_or_default();
        process.found.resize(self.targets.len(), false);
        if let (false, Ok(memory)) = (self.unused.is_empty(), tracee.memory()) {
            self.unused.drain(..).for_each(|one| _ = one.unmap(tracee, &memory));
        }
        // A process that runs already may have other threads.
        if tracee.is_live {
            process.mode = Mode::Atomic;
        }
        let mappings = tracee.mappings();
        for number in 0..self.targets.len() {
            if process.found[number] {
                continue;
            }
            let file = MappedTarget::find(number, &self.targets[number], &mappings);
            let Some(file) = file else { continue };
            process.found[number] = true;
            let memory = match &process.memory {
                Some(memory) => Ok(Rc::clone(memory)),
                None => tracee.memory().map(Rc::new),
            };
            let memory = match memory {
                Ok(memory) => process.memory.insert(memory),
                Err(error) => {
                    self.refuse(number, Unprobed::Unopened(error.into()));
                    continue;
                }
            };
            let common = process.instances.first().map(|instance| &*instance.shared);
            let (prefixes, common) = (process.mode.prefixes(), common.filter(|_| P::IS_COMMON));
            let prepared = match self.prepared.get_mut(number).and_then(Option::take) {
                Some(prepared) => prepared,
                None => Prepared::new(&self.probes, tracee.tid, memory, file, &[], &self.work),
            };
            match prepared.and_then(|prepared| prepared.apply(tracee, memory, prefixes, common)) {
                Err(why) => self.refuse(number, why),
                Ok(mut instance) => {
                    self.restored += instance.restored;
                    self.probes.patched(tracee.process, &instance.shared);
                    let pieces = std::mem::take(&mut instance.origins);
                    if !pieces.is_empty() && self.trampolines.len() < MOST_MAPS {
                        let path = self.targets[number].path.clone();
                        self.trampolines.push(Trampolines::new(tracee.process, path, pieces));
                    }
                    process.instances.push(Rc::new(instance));
                }
            }
        }
        let open = |(target, found): (&Target, &bool)| target.opened.is_ok() && !found;
        let any_left = self.targets.iter().zip(&process.found).any(open);
        self.processes.insert(tracee.process, process);
        any_left
    }

    fn created(&mut self, created: &Created) {
        let Created { parent, process, .. } = *created;
        let is_copy = process != parent && !shares(parent, process);
        if is_copy {
            self.probes.forked(parent);
        }
        let Some(state) = self.processes.get(&parent) else { return };
        let (before, tasks) = (state.mode, state.tasks.clone());
        let mut mode = before;
        if before != Mode::Atomic {
            match tasks.create(self.probes.copies(), created.tid, created.gs_base) {
                Ok((now, base)) => {
                    mode = now;
                    if mode != Mode::Atomic {
                        self.bases.insert(created.tid, base);
                    }
                }
                Err(why) => self.refuse_all(parent, &why),
            }
        }
        if mode != before {
            self.change(&tasks, mode);
        }
        let Some(state) = self.processes.get(&parent) else { return };
        let mut copy = state.clone();
        if process != parent && !copy.instances.is_empty() {
            match Memory::open(process).map(Rc::new) {
                Ok(memory) => copy.memory = Some(memory),
                Err(error) => {
                    self.refuse_all(parent, &Unprobed::Child(error.into()));
                    copy.memory = None;
                }
            }
        }
        let mut refused = Vec::new();
        if let (true, Some(memory)) = (is_copy, &copy.memory) {
            // Its code is a copy of its parent's at the fork.
            for instance in &copy.instances {
                let changed = mode.prefixes().map_or(Ok(()), |to| instance.change(memory, to));
                let numbered = changed.and_then(|()| instance.number(memory, process));
                refused.extend(numbered.err().map(|why| (instance.target, why)));
            }
        }
        self.processes.entry(process).or_insert(copy);
        refused.into_iter().for_each(|(target, why)| self.refuse(target, why));
    }

    fn faulted(&mut self, process: i32, at: u64, signal: i32) {
        let Some(state) = self.processes.get(&process).filter(|_| !self.is_restored) else {
            return;
        };
        for instance in &state.instances {
            if let Some(original) = instance.original(at, &self.trampolines) {
                self.faults[instance.target].entry(original).or_insert((signal, 0)).1 += 1;
            }
        }
    }

    fn started(&mut self, process: i32, tid: i32) {
        let Some(base) = self.bases.remove(&tid) else { return };
        match change(tid, |registers| registers.gs_base = base) {
            // It was killed, and counts nothing.
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(errno) => self.refuse_all(process, &Unprobed::Apart(errno)),
        }
    }

    fn thread_ending(&mut self, process: i32, tid: i32, base: u64) {
        self.bases.remove(&tid);
        if let Some(state) = self.processes.get(&process) {
            state.tasks.end(tid);
        }
        self.probes.thread_ending(process, tid, base);
    }

    fn executed(&mut self, process: i32) {
        if self.early.as_ref().is_some_and(|(early, _)| *early == process) {
            self.early = None;
            self.unused.clear();
            self.prepared.iter_mut().flatten().flatten().for_each(|one| drop(one.unused()));
        }
        if let Some(state) = self.processes.get(&process) {
            state.tasks.end(process);
        }
        self.forget(process);
    }

    fn process_ending(&mut self, process: i32) {
        self.probes.process_ending(process);
        let mappings = mappings(process);
        let code = mappings.iter().filter(|m| m.is_executable() && m.path.starts_with('/'));
        self.files.extend(code.map(|mapping| PathBuf::from(&mapping.path)));
        let Some(state) = self.processes.get(&process).cloned() else { return };
        if let (Some(memory), false) = (&state.memory, self.is_restored) {
            for instance in &state.instances {
                let condition = match instance.code.condition(memory) {
                    Condition::Patched if instance.code.is_writable(&mappings) => {
                        Condition::Writable
                    }
                    condition => condition,
                };
                self.judge(instance.target, condition);
            }
        }
        if state.found.iter().all(|found| *found) {
            return;
        }
        for number in 0..self.targets.len() {
            let is_found = state.found.get(number).is_some_and(|found| *found);
            if !is_found && self.targets[number].address(&mappings).is_some() {
                self.refuse(number, Unprobed::Late);
            }
        }
    }

    fn ended(&mut self, process: i32) {
        self.forget(process);
    }
}
