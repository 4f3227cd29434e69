//! Whether the code of the copies fits the L1 instruction cache and the op cache.

use super::common::{assumption, outcome};
use crate::harness::skeleton::has_wide_immediate;
use crate::initial::run_setup::RunSetup;
use crate::measurement::{Assumed, Assumption, Outcome};
use isa::code::{Block, Inst};
use tma::Cache;
use tma::tables::facts::OpCache;

/// Bytes of the harness: set-up, clock, and the worker's loop.
const HARNESS: usize = 6 * 1024;

/// Compares the bytes of the long and the short run with the L1 instruction cache.
pub fn l1_code(block: &Block, setup: &RunSetup, copies: usize, cache: Option<Cache>) -> Assumption {
    let long = bytes(block, setup, copies);
    let all = long + long / 2 + HARNESS;
    let Some(cache) = cache else {
        let how = format!("{all} bytes; the size of the L1 instruction cache is not known");
        return assumption(Assumed::L1Code, Outcome::Unchecked, how);
    };
    let how = format!(
        "{long} bytes in {} copies; with the short run and the harness, {all} of {} bytes of the L1 \
         instruction cache",
        copies,
        cache.bytes()
    );
    assumption(Assumed::L1Code, outcome(all <= cache.bytes()), how)
}

/// Compares the operations of the long run with the op cache.
pub fn op_cache(
    block: &Block,
    setup: &RunSetup,
    copies: usize,
    cache: Option<&OpCache>,
) -> Assumption {
    let ops = copies * block.instructions.iter().map(operations).sum::<usize>()
        + setup.reseeded.len() * copies;
    let about = format!("about {ops} operations in {} copies", copies);
    let Some(cache) = cache else {
        let how = format!("{about}; the op cache of this processor is not known");
        return assumption(Assumed::OpCache, Outcome::Unchecked, how);
    };
    let how = format!("{about}; the op cache holds {} ({})", cache.ops, cache.source);
    // A quarter is reserved for the end of the short run, the harness, and lines that are not full.
    if 4 * ops > 3 * cache.ops as usize {
        return assumption(Assumed::OpCache, Outcome::Violated, how);
    }
    match cache.per_32_bytes {
        Some(most) if ops * 32 > most as usize * bytes(block, setup, copies) => {
            let how = format!(
                "{how}, but not more than {most} per 32 bytes of code, which this code exceeds"
            );
            assumption(Assumed::OpCache, Outcome::Violated, how)
        }
        _ => assumption(Assumed::OpCache, Outcome::Held, how),
    }
}

/// Bytes of the copies; reinitialising a register is a load of 7 bytes.
fn bytes(block: &Block, setup: &RunSetup, copies: usize) -> usize {
    (block.bytes.len() + 7 * setup.reseeded.len()) * copies
}

/// Op-cache entries of an instruction: one, plus one for reading and writing the same memory and one
/// for a 64-bit immediate. Microcoded instructions are not considered.
fn operations(inst: &Inst) -> usize {
    let both = |m: &iced_x86::UsedMemory| Inst::reads(m.access()) && Inst::writes(m.access());
    1 + usize::from(inst.memory.iter().any(both)) + usize::from(has_wide_immediate(inst))
}

#[cfg(test)]
mod tests {
    use super::super::common::example::{block, setup};
    use super::*;

    #[test]
    fn code_fits_with_both_runs() {
        let cache = Some(Cache { ways: 8, sets: 64 });
        let add = block("4801d8");
        assert_eq!(l1_code(&add, &setup(&[], &[]), 192, cache).outcome, Outcome::Held);
        assert_eq!(l1_code(&add, &setup(&[], &[]), 8000, cache).outcome, Outcome::Violated);
        assert_eq!(l1_code(&add, &setup(&[], &[]), 192, None).outcome, Outcome::Unchecked);
    }

    #[test]
    fn operations_are_counted_against_the_size_and_the_window() {
        let cache =
            |per_32_bytes| OpCache { ops: 1536, per_32_bytes, source: "a manual".to_owned() };
        let add = block("4801d8");
        assert_eq!(
            op_cache(&add, &setup(&[], &[]), 960, Some(&cache(Some(18)))).outcome,
            Outcome::Held
        );
        // Reading and writing memory takes two: 1,920 operations.
        assert_eq!(
            op_cache(&block("480103"), &setup(&[], &[]), 960, Some(&cache(None))).outcome,
            Outcome::Violated
        );
        // 32 nops of a byte in 32 bytes.
        let nops = op_cache(&block("90"), &setup(&[], &[]), 192, Some(&cache(Some(18))));
        assert_eq!(nops.outcome, Outcome::Violated, "{}", nops.how);
        assert_eq!(op_cache(&add, &setup(&[], &[]), 960, None).outcome, Outcome::Unchecked);
    }
}
