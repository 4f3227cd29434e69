//! What the processor itself says about the alignment of a block's accesses.
//!
//! With the alignment check flag (RFLAGS.AC) set, an access of a program at an address that is no
//! multiple of its size ends in an exception, #AC (Intel SDM volume 3, "Alignment Check Exception").
//! The copies run once so, and where the first exception arises is compared with the address trace.
//! Two sources that know nothing of each other: one computes addresses from registers, the other is
//! the processor. Of accesses of more than eight bytes the manual leaves open whether they are
//! checked (volume 2, `MOVUPS`: "may or may not be generated").

use crate::harness::forms;
use crate::harness::required_state::Needs;
use crate::initial::failure::Failure;
use crate::initial::failure::explain;
use crate::initial::run_setup::Found;
use crate::initial::trace::Access;
use crate::measurement::{Assumption, Outcome};
use crate::profiler::Profiler;
use crate::runner::{BLOCK_CODE, Segment};
use crate::sandbox::Ended;
use isa::code::Block;
use tma::Result;

/// Trap number of the alignment check.
const ALIGNMENT_CHECK: u64 = 17;
/// The longest access that is checked for certain.
const CERTAIN: u64 = 8;

/// Where the processor's check stopped the copies.
type Stopped = Option<(usize, usize)>;

impl Profiler {
    /// Adds to the assumption `alignment` whether the processor agrees.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub(crate) fn check_alignment(
        &mut self,
        block: &Block,
        needs: &Needs,
        found: &Found,
        assumptions: &mut [Assumption],
    ) -> Result<()> {
        let alignment = assumptions.iter_mut().find(|i| i.name == "alignment");
        let touches = block.instructions.iter().any(isa::code::Inst::touches_memory);
        if let Some(alignment) = alignment.filter(|_| touches && self.options.explain) {
            match self.stopped(block, needs, found)? {
                Ok(stopped) => judge(block, found, stopped, alignment),
                Err(failure) => {
                    let why = failure.reason;
                    alignment.how += &format!("; the processor's own check was not made: {why}");
                }
            }
        }
        Ok(())
    }

    /// One run of the copies with the flag set.
    fn stopped(
        &mut self,
        block: &Block,
        needs: &Needs,
        found: &Found,
    ) -> Result<std::result::Result<Stopped, Failure>> {
        let (physical, pages) = (self.options.physical_pages, self.options.page_limit);
        self.runner.again(&found.values, &found.lines, physical, pages)?;
        let shape = found.shape(block, needs, found.copies, BLOCK_CODE);
        let program = forms::checked(&shape);
        self.runner.worker()?.write(program.start, &program.bytes);
        let segment = Segment { entry: program.start, repeat: 1 };
        let (ended, _) = self.runner.run(&[segment], &[(0, 1)])?;
        Ok(match &ended {
            Ended::Done => Ok(None),
            Ended::Fault(fault) if fault.trap == ALIGNMENT_CHECK => {
                let place = fault.offset.and_then(|offset| program.origin(offset));
                place.map(Some).ok_or_else(|| Failure::of_all("it stopped outside of the block"))
            }
            _ => Err(explain(&ended, &program, pages)),
        })
    }
}

fn is_unaligned(access: &&Access) -> bool {
    access.size > 1 && !access.address.is_multiple_of(access.size)
}

/// Compares the first exception with the first unaligned access of the trace.
fn judge(block: &Block, found: &Found, stopped: Stopped, alignment: &mut Assumption) {
    let place = |access: &Access| (access.copy, access.instruction);
    let certain = |a: &&Access| is_unaligned(a) && a.size.is_power_of_two() && a.size <= CERTAIN;
    let unaligned = || found.accesses.iter().filter(is_unaligned);
    let first = found.accesses.iter().find(certain).map(place);
    let name = |(copy, instruction): (usize, usize)| {
        format!(
            "instruction {instruction} `{}` in copy {copy}",
            block.instructions[instruction].text
        )
    };
    let told = match (stopped, first) {
        (None, None) if unaligned().next().is_none() => Ok("finds none either".to_owned()),
        (None, None) => {
            Ok("finds none, but need not look at accesses of more than 8 bytes".to_owned())
        }
        (None, Some(first)) => Err(format!("finds none, not even {}", name(first))),
        (Some(at), Some(first)) if at == first => Ok(format!("agrees: first {}", name(at))),
        (Some(at), first) if first.is_none_or(|first| at < first) => {
            let known = unaligned().any(|a| place(a) == at);
            let held = found.accesses.iter().any(|a| place(a) == at);
            match (known, held || found.complete) {
                (true, _) => Ok(format!("agrees: first {}", name(at))),
                (false, false) => Ok(format!("finds {}, which is not in the trace", name(at))),
                (false, true) => Err(format!("finds {}", name(at))),
            }
        }
        (Some(at), _) => Err(format!("finds {} first", name(at))),
    };
    let check = "one run with the processor's own check (EFLAGS.AC)";
    match told {
        Ok(told) => alignment.how += &format!("; {check} {told}"),
        Err(told) => {
            alignment.how += &format!("; {check} DISAGREES: it {told}");
            alignment.outcome = Outcome::Unchecked;
        }
    }
}
