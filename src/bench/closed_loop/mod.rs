//! A loop body run as the program runs it: its own back edge taken, addresses advancing, every
//! array apart from the others, nothing restored between iterations. Its time is the headline of the document.
//!
//! | file | concern |
//! |---|---|
//! | `arrays` | the pointer in an address, and extent and place of its array |
//! | `exit` | values with which the loop runs a chosen number of iterations |
//! | `plan` | initial registers and memory, also contents that decide addresses or the exit |
//! | `captured` | the loop with the code, registers and memory of a running program |
//! | `attempts` | which executions of a captured loop are tried, and whether they end alike |
//! | `bounded` | ways to leave a captured loop earlier than in the program |
//! | `executions` | several executions of a captured loop: their mean, and back to back |
//! | `timing` | one traced run of the plan, then long against short runs of the loop |
//!
//! A plan is a guess from the code of one iteration. Results follow from the traced run, never from the plan.

mod arrays;
mod attempts;
mod bounded;
mod captured;
mod executions;
mod exit;
mod plan;
mod timing;

pub use captured::can_be_moved;

use crate::checks::{self, Footprint};
use crate::initial::run_setup::RunSetup;
use crate::initial::trace::Access;
use crate::measurement::{
    Assumed, Assumption, Closed, Execution, LOOP, Line, Measurement, Outcome, Status,
};
use crate::plausibility::{check, width};
use crate::timer::{Timer, conclude};
use crate::timing::form_timing::FormTiming;
use crate::values::{NoPath, Values};
use executions::combine;
use isa::code::Block;
use std::collections::HashMap;
use tma::Result;
use tma::text::several;

/// A chain with a store in fewer than one of this many iterations costs each less than a cycle: passing a value
/// through memory takes some 5 cycles, 15 if it cannot be forwarded (agner.org, microarchitecture.pdf).
const SPARSE: usize = 16;
/// Greatest difference of the unrolled form that needs no explanation, as a share.
const ALIKE: f64 = 0.05;

/// The timing of a loop run as a loop.
pub(crate) struct ClosedLoop {
    /// The samples.
    pub timed: FormTiming,
    /// Its traced run; none with a program's values.
    pub setup: Option<RunSetup>,
    /// Initial values.
    pub values: Values,
    /// Pages it accesses.
    pub pages: Vec<u64>,
    /// Copies in the code.
    pub copies: usize,
    /// Whether the loop is this block and no other.
    pub is_one_block: bool,
    /// Iterations of a long run.
    pub iterations: usize,
    /// Offsets of the loop within a cache line.
    pub aligns: Vec<usize>,
    /// Pages and lines that an execution with a program's memory accesses.
    pub footprint: Option<Footprint>,
    /// Conditions of the run, for the reader.
    pub how: String,
    /// Executions of the program, each measured in isolation; none without a program's values.
    pub executions: Vec<Execution>,
}

impl Timer {
    /// Status, headline, assumptions and bounds of a block that was run as a loop.
    pub(crate) fn enter_loop(
        &mut self,
        block: &Block,
        closed: &ClosedLoop,
        measurement: &mut Measurement,
    ) -> Result<()> {
        let clock = self.source.clock().name();
        conclude(measurement, &closed.timed, self.options.passes, block, clock);
        if let Some(throughput) = &mut measurement.throughput {
            combine(&closed.executions, throughput);
        }
        measurement.executions.clone_from(&closed.executions);
        // A loop of several blocks has no fixed number of instructions.
        measurement.ipc = measurement.ipc.filter(|_| closed.is_one_block);
        self.list_path(block, measurement);
        measurement.headline = LOOP;
        measurement.closed = Some(Closed {
            forwards: closed.setup.as_ref().map(|setup| forwards(&setup.accesses, setup.copies)),
            is_one_block: closed.is_one_block,
        });
        measurement.values = Some(closed.values.clone());
        measurement.pages = closed.pages.iter().map(|p| format!("{p:#x}")).collect();
        measurement.notes.push(format!("measured as a loop: {}", closed.how));
        let difference = difference(block, measurement);
        measurement.notes.extend(difference);
        if self.options.assumptions {
            let (timed, core) = (&closed.timed, &self.options.core);
            let physical = self.options.physical_pages;
            measurement.assumptions = match &closed.setup {
                Some(setup) => checks::all(block, setup, closed.copies, timed, physical, core),
                None => checks::of_captured(closed.footprint.as_ref(), timed, core),
            };
            let how = format!("{} in a row", several(closed.iterations, "iteration"));
            let steady = Assumption { name: Assumed::SteadyState, outcome: Outcome::Held, how };
            measurement.assumptions.push(steady);
        }
        let Some(throughput) = measurement.throughput.clone() else { return Ok(()) };
        measurement.bounds.clear();
        let mut bounds = Vec::new();
        if self.options.explain && closed.setup.is_some() {
            bounds.extend(self.loop_front_end(block, closed)?);
        }
        bounds.extend(match self.main_path(block) {
            // Other iterations may take less.
            Some(Ok((body, share))) => {
                width(&body, &self.options.core).map(|bound| bound.times(share))
            }
            Some(Err(_)) => None,
            None => width(block, &self.options.core).filter(|_| closed.is_one_block),
        });
        let core = &self.options.core;
        let (mut checked, impossible) = check(&mut bounds, &throughput, closed.iterations, core);
        if let (Status::Ok, Some(why)) = (measurement.status, impossible) {
            measurement.distrust(Status::Unstable, why, false);
        }
        if let (Outcome::Unchecked, Some(Err(why))) = (checked.outcome, self.main_path(block)) {
            checked.how = why.to_string();
        }
        measurement.assumptions.push(checked);
        measurement.bounds = bounds;
        Ok(())
    }

    /// For a loop of several blocks that starts with `block`: the path of nearly all iterations as one block, and
    /// its share, or why there is none.
    fn main_path(&self, block: &Block) -> Option<std::result::Result<(Block, f64), NoPath>> {
        let snapshot = self.options.snapshot.as_ref().filter(|one| one.is_whole_at(block))?;
        Some(snapshot.main_path().and_then(|path| Ok((Block::decode(&path.body)?, path.share))))
    }

    /// Lists the path of most iterations of a loop of several blocks as its code.
    fn list_path(&self, block: &Block, measurement: &mut Measurement) {
        let whole = self.options.snapshot.as_ref().filter(|one| one.is_whole_at(block));
        let Some(Ok(path)) = whole.and_then(|one| one.path.as_ref()) else { return };
        let line = |(at, bytes, text): &(u64, Vec<u8>, String)| Line {
            offset: format!("{at:#x}"),
            address: Some(format!("{at:#x}")),
            bytes: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            text: text.clone(),
        };
        measurement.block.instructions = path.instructions.iter().map(line).collect();
        let count = path.instructions.len();
        let share = 100.0 * path.share;
        measurement.notes.push(format!(
            "{count} instructions are listed, at their addresses in the file: the path of {share:.0} % of the \
             iterations; bounds are of this path without its jumps"
        ));
        let cycles = measurement.throughput.as_ref().map(|throughput| throughput.cycles);
        measurement.ipc = cycles
            .filter(|cycles| *cycles > 0.0 && path.share == 1.0)
            .map(|cycles| count as f64 / cycles);
    }
}

/// States that the unrolled form takes another time, if it does, and under which other conditions.
fn difference(block: &Block, measurement: &Measurement) -> Option<String> {
    let (looped, forms) = (measurement.throughput.as_ref()?, measurement.forms.as_ref()?);
    let unrolled = forms.unrolled.trusted()?;
    if (unrolled - looped.cycles).abs() <= ALIKE * looped.cycles {
        return None;
    }
    let memory = if block.instructions.iter().any(isa::code::Inst::touches_memory) {
        "pointers start alike there, so that accesses of different arrays meet, and "
    } else {
        ""
    };
    Some(format!(
        "straight copies of the block take {unrolled:.2} cycles: {memory}no jump is taken between them"
    ))
}

/// Whether values pass from iteration to iteration through memory so often that this may bound the loop.
///
/// The longest chain is an upper limit: every load of an iteration is taken to matter to all its later stores.
fn forwards(accesses: &[Access], copies: usize) -> bool {
    // For each word stored: the iteration, and the stores in the chain up to it.
    let mut stored: HashMap<u64, (usize, usize)> = HashMap::new();
    let (mut copy, mut own, mut longest) = (0, 0, 0);
    for access in accesses {
        if access.copy != copy {
            (copy, own) = (access.copy, 0);
        }
        let words = access.address / 4..=access.address.saturating_add(access.size.max(1) - 1) / 4;
        if access.reads {
            let chains = words.clone().filter_map(|word| stored.get(&word));
            let earlier = chains.filter(|(by, _)| *by < copy).map(|(_, chain)| *chain);
            own = own.max(earlier.max().unwrap_or(0));
        }
        longest = longest.max(own);
        if access.writes {
            stored.extend(words.map(|word| (word, (copy, own + 1))));
        }
    }
    longest * SPARSE >= copies
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Iterations that each load a word, and store one.
    fn iterations(words: impl Iterator<Item = (u64, u64)>) -> Vec<Access> {
        let access = |copy, word: u64, reads: bool| Access {
            copy,
            instruction: usize::from(!reads),
            address: 4 * word,
            size: 4,
            reads,
            writes: !reads,
        };
        let both = |(copy, (load, store))| [access(copy, load, true), access(copy, store, false)];
        words.enumerate().flat_map(both).collect()
    }

    #[test]
    fn a_loop_forwards_if_a_chain_of_stores_and_loads_runs_through_its_iterations() {
        let is =
            |words: &dyn Fn(u64) -> (u64, u64)| forwards(&iterations((0..1024).map(words)), 1024);
        assert!(is(&|_| (7, 7)), "a counter");
        assert!(is(&|i| (i, i + 1)), "each element from the last");
        assert!(is(&|i| (i % 8, i % 8)), "eight counters in turn");
        assert!(!is(&|i| (i, i + 5000)), "a copy");
        assert!(!is(&|i| (i * 37 % 256, i * 37 % 256)), "a histogram of 256 values");
        assert!(!is(&|i| (i / 2 * 2, 9000)), "one result, never loaded");
    }
}
