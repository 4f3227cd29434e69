//! Dependencies through memory, found by simulation with random values: unknown registers and memory
//! get random values, integer arithmetic is evaluated, and accesses whose addresses coincide in all
//! runs are dependent.
//!
//! | file | concern |
//! |---|---|
//! | `action`, `operation` | the region, decoded for fast evaluation |
//! | `machine`, `step`, `evaluate`, `arithmetic` | the simulator and its parameters |
//! | `shadow` | simulated memory: the value and last writer of each byte |
//! | `dependency` | counts of the stores that each load reads; dependencies; accesses that may alias |

mod action;
mod arithmetic;
mod dependency;
mod evaluate;
mod machine;
mod operation;
mod shadow;
mod step;

use super::code::Code;
use dependency::{Candidate, PROBED, Probe, Tally};
use machine::Machine;
use operation::Program;
use shadow::splitmix64;

pub use dependency::{
    AliasClass, MayAlias, MemoryDependencies, MemoryDependency, Origin, may_alias_pairs,
};
pub use machine::{InitialValues, MAX_RUNS, MAX_WINDOW, Settings};

/// Finds memory dependencies; reuses its buffers between regions.
#[derive(Debug, Default)]
pub struct Finder {
    machine: Machine,
    tally: Tally,
}

impl Finder {
    /// The memory dependencies of `code`.
    pub fn find(&mut self, code: &Code, settings: &Settings) -> MemoryDependencies {
        let program = Program::of(code);
        let length = program.operations.len();
        let mut opaque: Vec<usize> =
            (0..length).filter(|i| program.operations[*i].is_opaque()).collect();
        if length == 0 || program.addresses.is_empty() {
            return MemoryDependencies { opaque, ..MemoryDependencies::default() };
        }
        let window = settings.window.clamp(1, MAX_WINDOW);
        // Two more than fit into the window: the last store within it, and the first iteration.
        let iterations = window.div_ceil(length as u32) + 2;
        let runs = settings.runs.clamp(1, MAX_RUNS);
        let nothing = InitialValues::default();
        let mut votes: Vec<(Candidate, u32)> = Vec::new();
        let mut classes = Vec::new();
        let mut unknown: Vec<usize> = Vec::new();
        let mut completed = Vec::with_capacity(runs as usize);
        let probes = self.probes(&program, window, settings.initial_values.first());
        for run in 0..runs {
            let given = match settings.initial_values.len() {
                0 => &nothing,
                many => &settings.initial_values[run as usize % many],
            };
            let iterations = self.run(&program, window, iterations, splitmix64(run.into()), given);
            completed.push(iterations);
            if run == 0 {
                let both = (self.tally.probes.as_slice(), probes.as_slice());
                classes = dependency::classes(&program, &self.machine, &self.tally.origins, both);
            }
            unknown.extend(&self.machine.unknown_counts);
            for candidate in self.tally.majority(iterations) {
                let same = |(k, _): &&mut (Candidate, u32)| {
                    (k.access, k.writer, k.delta)
                        == (candidate.access, candidate.writer, candidate.delta)
                };
                match votes.iter_mut().find(same) {
                    Some((_, votes)) => *votes += 1,
                    None => votes.push((candidate, 1)),
                }
            }
        }
        // All runs with random values must agree. With several sets of initial values, which were sampled
        // at different times, half must. Runs that ended too early do not count.
        let enough = |candidate: &Candidate| {
            let could =
                completed.iter().filter(|iterations| **iterations > candidate.delta).count() as u32;
            if settings.initial_values.len() > 1 { could.div_ceil(2) } else { could }
        };
        let mut dependencies: Vec<MemoryDependency> = votes
            .iter()
            .filter(|(candidate, votes)| *votes >= enough(candidate))
            .map(|(candidate, _)| {
                let (reader, access) = program.owners[candidate.access];
                let Candidate { writer, delta, overlap, .. } = *candidate;
                MemoryDependency { writer, reader, access, delta, overlap }
            })
            .collect();
        dependencies.sort_unstable_by_key(|c| (c.reader, c.access, c.delta, c.writer));
        let repeated = (0..length)
            .filter(|i| program.operations[*i].is_repeated() && !unknown.contains(i))
            .collect();
        opaque.extend(unknown);
        opaque.sort_unstable();
        opaque.dedup();
        MemoryDependencies { dependencies, classes, opaque, repeated, iterations }
    }

    /// Where the accesses are in a run of a few iterations with other unknown values, but the same
    /// initial values, as the first run.
    fn probes(
        &mut self,
        program: &Program,
        window: u32,
        given: Option<&InitialValues>,
    ) -> Vec<Probe> {
        const SEED: u64 = 0x5eed;
        let nothing = InitialValues::default();
        self.run(program, window, PROBED + 1, SEED, given.unwrap_or(&nothing));
        self.tally.probes.clone()
    }

    /// Simulates up to `iterations` iterations and returns their number: fewer if the initial values
    /// determine that the loop ends earlier.
    fn run(
        &mut self,
        program: &Program,
        window: u32,
        iterations: u32,
        seed: u64,
        given: &InitialValues,
    ) -> u32 {
        let length = program.operations.len();
        self.machine.reset(seed, program.addresses.len(), given);
        self.tally.reset(length, window, program.addresses.len());
        for iteration in 1..=iterations {
            for number in 0..length {
                self.machine.step(program, number, &mut self.tally);
            }
            if program.back.is_some_and(|back| self.machine.rules_out(back)) {
                return iteration;
            }
        }
        iterations
    }
}
