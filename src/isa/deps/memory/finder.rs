//! Finds memory dependencies: several runs with random values, and what all of them agree on.

use super::alias;
use super::found::{Carried, Found};
use super::machine::Machine;
use super::mix::mix;
use super::program::Program;
use super::settings::{Given, LONGEST_WINDOW, MOST_RUNS, Settings};
use super::tally::{Kept, Tally};
use crate::deps::code::Code;

/// Looks for them; keeps its tables from one region to the next.
#[derive(Debug, Default)]
pub struct Finder {
    machine: Machine,
    tally: Tally,
}

impl Finder {
    /// The dependencies of `code` through memory.
    pub fn find(&mut self, code: &Code, settings: &Settings) -> Found {
        let program = Program::of(code);
        let length = program.operations.len();
        let opaque = (0..length).filter(|i| program.operations[*i].is_opaque()).collect();
        if length == 0 || program.addresses.is_empty() {
            return Found { opaque, ..Found::default() };
        }
        let window = settings.window.clamp(1, LONGEST_WINDOW);
        // Two more than fit: the last store in sight of a load, and the first iteration.
        let iterations = window.div_ceil(length as u32) + 2;
        let runs = settings.runs.clamp(1, MOST_RUNS);
        let nothing = Given::default();
        let mut votes: Vec<(Kept, u32)> = Vec::new();
        let mut classes = Vec::new();
        let mut lasted = Vec::with_capacity(runs as usize);
        for run in 0..runs {
            let given = match settings.given.len() {
                0 => &nothing,
                many => &settings.given[run as usize % many],
            };
            let iterations = self.run(&program, window, iterations, mix(run.into()), given);
            lasted.push(iterations);
            if run == 0 {
                classes = alias::classes(&program, &self.machine, &self.tally.origins);
            }
            for kept in self.tally.majority(iterations) {
                let same = |(k, _): &&mut (Kept, u32)| {
                    (k.access, k.writer, k.delta) == (kept.access, kept.writer, kept.delta)
                };
                match votes.iter_mut().find(same) {
                    Some((_, votes)) => *votes += 1,
                    None => votes.push((kept, 1)),
                }
            }
        }
        // Random values must agree, all of them. Those of samples are of different moments. A run
        // that ended before says nothing.
        let enough = |kept: &Kept| {
            let could = lasted.iter().filter(|iterations| **iterations > kept.delta).count() as u32;
            if settings.given.len() > 1 { could.div_ceil(2) } else { could }
        };
        let mut carried: Vec<Carried> = votes
            .iter()
            .filter(|(kept, votes)| *votes >= enough(kept))
            .map(|(kept, _)| {
                let (reader, access) = program.owners[kept.access];
                let Kept { writer, delta, overlap, .. } = *kept;
                Carried { writer, reader, access, delta, overlap }
            })
            .collect();
        carried.sort_unstable_by_key(|c| (c.reader, c.access, c.delta, c.writer));
        Found { carried, classes, opaque, iterations }
    }

    /// Runs it for so many iterations; fewer where the values given say that the loop ends.
    fn run(
        &mut self,
        program: &Program,
        window: u32,
        iterations: u32,
        seed: u64,
        given: &Given,
    ) -> u32 {
        let length = program.operations.len();
        self.machine.reset(seed, program.addresses.len(), given);
        self.tally.reset(length, window, program.addresses.len());
        for iteration in 1..=iterations {
            for number in 0..length {
                self.machine.step(program, number, &mut self.tally);
            }
            if program.again.is_some_and(|condition| self.machine.denies(condition)) {
                return iteration;
            }
        }
        iterations
    }
}
