//! A kind of probe as code of a file: trampolines and jumps before they are written into a process, also those of
//! planned observers, and the reason where a file has none.

use super::mapped::Shared;
use super::patched::Jump;
use super::target::Target;
use super::tasks::Copies;
use super::unprobed::Unprobed;
use crate::emit::{Patch, emit_observer, most};
use crate::facts::Function;
use crate::plan::{NoPlace, Observation, PAGE, Request, Room};
use std::ops::Range;
use std::sync::Arc;

/// A function of a target that is to be probed.
#[derive(Clone, Copy)]
pub struct Probed<'a> {
    /// Index of its target.
    pub number: usize,
    pub target: &'a Target,
    /// Its index in the target.
    pub index: usize,
    pub facts: &'a Function,
}

/// Probes of one kind: how they are planned and encoded.
pub trait Probes: Sized {
    /// The plan of a function.
    type Plan;

    /// Whether all files of a process share one memory.
    const IS_COMMON: bool;

    /// Bytes of shared memory for a target (with its index), and most bytes of its trampolines near
    /// the code.
    fn needs(&self, number: usize, target: &Target) -> (u64, u64);

    /// Copies of the shared memory for concurrent tasks.
    fn copies(&self) -> Copies {
        Copies::default()
    }

    /// Whether probes of code that has been running replace several instructions, too.
    fn joins(&self) -> bool {
        false
    }

    /// Plans the probes of a function.
    fn plan(&self, function: Probed<'_>, room: &mut Room) -> Self::Plan;

    /// Encodes a plan, and refuses in it each probe that cannot be encoded.
    fn write(
        &self,
        code: &Code,
        function: Probed<'_>,
        plan: &mut Self::Plan,
        written: &mut Written,
    );

    /// Called when a file was patched in a process, before its code runs, with the memory that its
    /// trampolines write.
    fn patched(&mut self, _process: i32, _shared: &Arc<Shared>) {}

    /// Called when a process has forked, with a copy of its memory.
    fn forked(&mut self, _process: i32) {}

    /// Called when a thread is about to end, with the base of its own memory (fs).
    fn thread_ending(&mut self, _process: i32, _tid: i32, _base: u64) {}

    /// Called when all threads of a process are about to end, while its memory still exists.
    fn process_ending(&mut self, _process: i32) {}

    /// Called before [`closed`](Self::closed): what was added to each p_vaddr of the file.
    fn placed(&mut self, _target: &Target, _shared: &Shared, _bias: u64) {}

    /// Called to read the shared memory of a file when all processes with it have ended, or at the
    /// end, with the plans of its functions and the number of its probes.
    ///
    /// # Errors
    /// The reason why the target was not fully probed.
    fn closed(
        &mut self,
        number: usize,
        target: &Target,
        plans: Vec<Result<Self::Plan, Unprobed>>,
        shared: &Shared,
        probes: usize,
    ) -> Result<(), Unprobed>;

    /// Called repeatedly while the command runs.
    fn tick(&mut self) {}
}

/// Bytes for the number of a process, aligned.
pub const WORD: usize = 16;

/// Addresses of a file's code and memory in a process.
pub struct Code {
    /// Added to a p_vaddr.
    pub bias: u64,
    /// Address of the shared memory.
    pub shared: u64,
    /// Address of the trampolines near the code.
    pub(super) trampolines: u64,
}

/// Trampolines and jumps to write.
#[derive(Default)]
pub struct Written {
    /// Trampolines next to the shared memory.
    pub(super) trampolines: Vec<u8>,
    /// Addresses and bytes of the trampolines of puns.
    pub(super) far: Vec<(u64, Vec<u8>)>,
    pub(super) prefixes: Vec<u64>,
    /// Address of the number of the process.
    pub(super) process: Option<u64>,
    pub(super) jumps: Vec<Jump>,
    /// Parts of trampolines, in the process → original p_vaddr.
    pub origins: Vec<(Range<u64>, u64)>,
}

impl Written {
    /// The address of the next trampoline: that of the p_vaddr `far`, or anywhere if not given.
    pub fn place(&self, code: &Code, far: Option<u64>) -> u64 {
        let next = code.trampolines + self.trampolines.len() as u64;
        far.map_or(next, |at| code.bias.wrapping_add(at))
    }

    /// Address of the number of the process (4 bytes; 0 unless it was forked). To be called before
    /// any trampoline is added.
    pub fn process(&mut self, code: &Code) -> u64 {
        *self.process.get_or_insert_with(|| {
            let at = code.trampolines + self.trampolines.len() as u64;
            self.trampolines.extend([0; WORD]);
            at
        })
    }

    /// Adds a trampoline at its [place](Self::place), and the jump there from the p_vaddr `at`.
    pub fn add(&mut self, code: &Code, far: Option<u64>, at: u64, patch: Patch) {
        let Patch { trampoline, prefixes, jump } = patch;
        let to = self.place(code, far);
        self.prefixes.extend(prefixes.iter().map(|offset| to + *offset as u64));
        self.jumps.push(Jump { at: code.bias.wrapping_add(at), bytes: jump, to });
        match far {
            Some(_) => self.far.push((to, trampoline)),
            None => self.trampolines.extend(trampoline),
        }
    }

    /// All trampolines by address, joined per page: few writes while a process is stopped.
    pub(super) fn pieces(&mut self, code: &Code) -> Vec<(u64, Vec<u8>)> {
        let near = (code.trampolines, std::mem::take(&mut self.trampolines));
        let mut all = std::mem::take(&mut self.far);
        all.extend(Some(near).filter(|(_, bytes)| !bytes.is_empty()));
        all.sort_by_key(|(at, _)| *at);
        let mut pieces: Vec<(u64, Vec<u8>)> = Vec::new();
        for (at, bytes) in all {
            match pieces.last_mut() {
                Some((start, before)) if *start / PAGE == at / PAGE => {
                    before.resize((at - *start) as usize, 0);
                    before.extend(bytes);
                }
                _ => pieces.push((at, bytes)),
            }
        }
        pieces
    }
}

/// Why a file was not observed: `refused` in a process, or never patched.
pub fn refusal(refused: &[Unprobed], is_patched: bool) -> Option<Unprobed> {
    refused.first().cloned().or((!is_patched).then_some(Unprobed::NotMapped))
}

/// Most bytes of the trampolines of a function whose requests have so many parts in all.
pub fn most_of(facts: &Function, parts: usize) -> u64 {
    let instructions: usize = facts.blocks.iter().map(|b| b.instructions.len()).sum();
    // An instruction may be copied for its own block and for the one before.
    most(parts, 2 * instructions)
}

/// Encodes the observers of a plan, and refuses in it those that cannot be encoded. `request` gives a
/// request by its number in the plan, with its number in records.
pub fn write_observers(
    code: &Code,
    facts: &Function,
    plan: &mut Observation,
    written: &mut Written,
    request: &dyn Fn(usize) -> (Request, u32),
) {
    for observer in std::mem::take(&mut plan.observers) {
        let own: Vec<(Request, u32)> =
            observer.requests.iter().map(|number| request(*number)).collect();
        let bytes = &facts.bytes[(observer.at - facts.range.start) as usize..];
        let to = written.place(code, observer.trampoline);
        match emit_observer(&observer, bytes, code.bias, &own, code.shared, to) {
            Ok(patch) => {
                written.add(code, observer.trampoline, observer.at, patch);
                plan.observers.push(observer);
            }
            Err(why) => {
                let why = NoPlace::from(why);
                plan.refused.extend(observer.requests.iter().map(|n| (*n, why.clone())));
            }
        }
    }
}
