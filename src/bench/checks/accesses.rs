//! Checks of single accesses: alignment, confirmed by the processor; masks that select nothing; unmapped pages of
//! masked accesses and prefetches.
//!
//! With the alignment check flag (RFLAGS.AC) set, a user-mode access at an address that is not a
//! multiple of its size raises #AC (Intel SDM volume 3, "Alignment Check Exception"). The copies run
//! once with the flag, and the first exception is compared with the address trace, an independent
//! source. For accesses of more than 8 bytes the manual leaves the exception open (volume 2, `MOVUPS`:
//! "may or may not be generated").

use super::common::listed;
use crate::harness::{RequiredState, forms};
use crate::initial::run_setup::{Masked, RunSetup, WithoutFaults};
use crate::initial::trace::Access;
use crate::initial::{Failure, explain};
use crate::measurement::{Assumed, Assumption, Outcome};
use crate::runner::BLOCK_CODE;
use crate::sandbox::Ended;
use crate::timer::Timer;
use isa::code::Block;
use tma::Result;
use tma::text::several;

/// Trap number of the alignment check.
const ALIGNMENT_CHECK: u64 = 17;
/// The longest access that is guaranteed to be checked.
const GUARANTEED: u64 = 8;

/// Copy and instruction at which the alignment check stopped.
type Stopped = Option<(usize, usize)>;

impl Timer {
    /// Adds the processor's check to the assumption `alignment`.
    pub(crate) fn check_alignment(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
        setup: &RunSetup,
        assumptions: &mut [Assumption],
    ) -> Result<()> {
        let alignment = assumptions.iter_mut().find(|i| i.name == Assumed::Alignment);
        let touches = block.instructions.iter().any(isa::code::Inst::touches_memory);
        if let Some(alignment) = alignment.filter(|_| touches && self.options.explain) {
            match self.stopped(block, required_state, setup)? {
                Ok(stopped) => judge(block, setup, stopped, alignment),
                Err(failure) => {
                    let why = failure.reason;
                    alignment.how += &format!("; the processor's alignment check failed: {why}");
                }
            }
        }
        Ok(())
    }

    /// One run of the copies with the flag set.
    fn stopped(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
        setup: &RunSetup,
    ) -> Result<std::result::Result<Stopped, Failure>> {
        let (physical, pages) = (self.options.physical_pages, self.options.page_limit);
        self.runner.again(&setup.values, &setup.lines, &setup.pages, physical, pages)?;
        let shape = setup.shape(block, required_state, setup.copies, BLOCK_CODE);
        let program = forms::checked(&shape);
        let ended = self.runner.run_once(&program)?;
        Ok(match &ended {
            Ended::Done => Ok(None),
            Ended::Fault(fault) if fault.trap == ALIGNMENT_CHECK => {
                let place = fault.offset.and_then(|offset| program.origin(offset));
                place.map(Some).ok_or_else(|| Failure::of_block("it stopped outside the block"))
            }
            _ => Err(explain(&ended, &program, pages)),
        })
    }
}

fn is_unaligned(access: &&Access) -> bool {
    access.size > 1 && !access.address.is_multiple_of(access.size)
}

/// Compares the first exception with the first unaligned access of the trace.
fn judge(block: &Block, setup: &RunSetup, stopped: Stopped, alignment: &mut Assumption) {
    let place = |access: &Access| (access.copy, access.instruction);
    let checked = |a: &&Access| is_unaligned(a) && a.size.is_power_of_two() && a.size <= GUARANTEED;
    let unaligned = || setup.accesses.iter().filter(is_unaligned);
    let first = setup.accesses.iter().find(checked).map(place);
    let name = |(copy, instruction): (usize, usize)| {
        format!(
            "instruction {instruction} `{}` in copy {copy}",
            block.instructions[instruction].text
        )
    };
    let result = match (stopped, first) {
        (None, None) if unaligned().next().is_none() => Ok("finds none either".to_owned()),
        (None, None) => {
            Ok("finds none, but accesses of more than 8 bytes may be exempt".to_owned())
        }
        (None, Some(first)) => Err(format!("finds none, not even {}", name(first))),
        (Some(at), Some(first)) if at == first => Ok(format!("agrees: first {}", name(at))),
        (Some(at), first) if first.is_none_or(|first| at < first) => {
            let known = unaligned().any(|a| place(a) == at);
            let held = setup.accesses.iter().any(|a| place(a) == at);
            match (known, held || setup.complete) {
                (true, _) => Ok(format!("agrees: first {}", name(at))),
                (false, false) => Ok(format!("finds {}, which is not in the trace", name(at))),
                (false, true) => Err(format!("finds {}", name(at))),
            }
        }
        (Some(at), _) => Err(format!("finds {} first", name(at))),
    };
    let check = "the processor's alignment check (EFLAGS.AC)";
    match result {
        Ok(agrees) => alignment.how += &format!("; {check} {agrees}"),
        Err(disagrees) => {
            alignment.how += &format!("; {check} disagrees: it {disagrees}");
            alignment.outcome = Outcome::Unchecked;
        }
    }
}

/// Checks that every mask selects an element, and that masked accesses and prefetches have pages; nothing without such
/// accesses.
pub fn masks(block: &Block, setup: &RunSetup) -> Vec<Assumption> {
    let found = &setup.without_faults;
    let pages = (found.prefetches || !found.masked.is_empty()).then(|| pages(setup));
    pages.into_iter().chain(selections(block, found)).collect()
}

fn pages(setup: &RunSetup) -> Assumption {
    let found = &setup.without_faults;
    let missing = found.pages.iter().filter(|page| !setup.pages.contains(page)).count();
    if missing > 0 {
        let how = format!(
            "{} of masked accesses or prefetches cannot be mapped: suppressing the fault of a masked access \
             takes hundreds of cycles, and each prefetch walks the page table",
            several(missing, "page")
        );
        return Assumed::MappedPages.violated(how);
    }
    match found.incomplete {
        Some(why) => Assumed::MappedPages.unchecked(why),
        None => Assumed::MappedPages
            .held("address trace: the pages of all masked accesses and prefetches are mapped"),
    }
}

fn selections(block: &Block, found: &WithoutFaults) -> Option<Assumption> {
    let all = &found.masked;
    if all.is_empty() {
        return None;
    }
    let empty = |m: &&Masked| m.empty > 0;
    let hits =
        all.iter().filter(empty).flat_map(|m| (0..m.empty).map(|copy| (m.instruction, copy)));
    let copies = all.iter().map(|m| m.copies).max().unwrap_or(0);
    let how = listed(block, copies, hits);
    Some(if !how.is_empty() {
        let remedy = if all.iter().all(|m| is_vector(block, m)) {
            "; --init vec=-1 selects all of them"
        } else {
            ""
        };
        let how = format!(
            "the mask selects nothing: {how}; the page is mapped, and nothing is accessed{remedy}"
        );
        Assumed::Masks.violated(how)
    } else if all.iter().any(|m| m.copies == 0) {
        Assumed::Masks.unchecked("some masks are not in the trace")
    } else {
        Assumed::Masks.held("address trace: every mask selects an element")
    })
}

/// Whether the mask is a vector register, whose sign bits `--init vec` sets.
fn is_vector(block: &Block, masked: &Masked) -> bool {
    !block.instructions[masked.instruction].text.contains("{k")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::common::example::{block, setup};

    #[test]
    fn masks_that_select_nothing_are_named() {
        let store = block("c4e27d2e0f"); // vmaskmovps [rdi],ymm0,ymm1
        let with = |empty, copies| {
            let masked = vec![Masked { instruction: 0, empty, copies }];
            selections(&store, &WithoutFaults { masked, ..Default::default() }).unwrap()
        };
        assert_eq!(with(0, 2).outcome, Outcome::Held);
        assert_eq!(with(0, 0).outcome, Outcome::Unchecked);
        let empty = with(2, 2);
        assert_eq!(empty.outcome, Outcome::Violated);
        assert!(empty.how.contains("(2 of 2 copies)") && empty.how.contains("vec=-1"), "{empty:?}");
    }

    #[test]
    fn pages_that_are_missing_are_said() {
        let with = |pages: &[u64], incomplete| {
            let found = WithoutFaults {
                prefetches: true,
                pages: pages.to_vec(),
                incomplete,
                ..Default::default()
            };
            let all =
                masks(&block("0f180e"), &RunSetup { without_faults: found, ..setup(&[], &[]) });
            assert_eq!(all.len(), 1);
            (all[0].name, all[0].outcome)
        };
        assert_eq!(with(&[], None), (Assumed::MappedPages, Outcome::Held));
        assert_eq!(with(&[0x9000], None), (Assumed::MappedPages, Outcome::Violated));
        assert_eq!(with(&[], Some("too many")), (Assumed::MappedPages, Outcome::Unchecked));
        assert!(masks(&block("4801d8"), &setup(&[], &[])).is_empty());
    }
}
