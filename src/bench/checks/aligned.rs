//! Cross-checks the alignment of a block's accesses with the processor.
//!
//! With the alignment check flag (RFLAGS.AC) set, a user-mode access at an address that is not a
//! multiple of its size raises #AC (Intel SDM volume 3, "Alignment Check Exception"). The copies run
//! once with the flag, and the first exception is compared with the address trace, an independent
//! source. For accesses of more than 8 bytes the manual leaves the exception open (volume 2, `MOVUPS`:
//! "may or may not be generated").

use crate::harness::forms;
use crate::harness::required_state::RequiredState;
use crate::initial::failure::Failure;
use crate::initial::failure::explain;
use crate::initial::run_setup::RunSetup;
use crate::initial::trace::Access;
use crate::measurement::{Assumed, Assumption, Outcome};
use crate::runner::{BLOCK_CODE, Segment};
use crate::sandbox::Ended;
use crate::timer::Timer;
use isa::code::Block;
use tma::Result;

/// Trap number of the alignment check.
const ALIGNMENT_CHECK: u64 = 17;
/// The longest access that is guaranteed to be checked.
const GUARANTEED: u64 = 8;

/// Copy and instruction at which the alignment check stopped.
type Stopped = Option<(usize, usize)>;

impl Timer {
    /// Adds the processor's check to the assumption `alignment`.
    ///
    /// # Errors
    /// The sandbox cannot be started.
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
        self.runner.worker()?.write(program.start, &program.bytes);
        let segment = Segment { entry: program.start, repeat: 1 };
        let (ended, _) = self.runner.run(&[segment], &[(0, 1)])?;
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
