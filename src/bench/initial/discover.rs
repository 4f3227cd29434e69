//! Making a block runnable: which initial values, which pages, which lines it writes, which way
//! its final jump goes, and every address it touches.

pub use super::failure::{Failure, explain};
use super::seek::Seeker;
use crate::Options;
use crate::harness::forms;
use crate::harness::required_state::Needs;
use crate::initial::run_setup::Found;
use crate::runner::{BLOCK_CODE, Runner, Segment};
use crate::sandbox::Ended;
use iced_x86::Mnemonic;
use isa::code::{Block, Inst};
use tma::Result;

/// Finds values and pages with which `copies` copies of the block run, or fewer if need be.
///
/// In this order: the prepared sets of values; values changed one by one where they reach the
/// failing instruction; fewer copies; last, registers set again before every copy.
///
/// # Errors
/// The sandbox cannot be started. A block that does not run is a [`Failure`].
pub fn discover(
    runner: &mut Runner,
    block: &Block,
    needs: &Needs,
    copies: usize,
    options: &Options,
) -> Result<std::result::Result<Found, Failure>> {
    Seeker::new(runner, block, needs, copies, options).run()
}

/// One of two stages: first few copies, which are enough if addresses stay the same. If they do not,
/// all copies follow, and begin with what was found `before`: sets of values tried before those
/// failed with few copies and would again.
///
/// # Errors
/// As [`discover`].
pub fn discover_staged(
    runner: &mut Runner,
    block: &Block,
    needs: &Needs,
    (copies, last): (usize, bool),
    before: Option<&Found>,
    options: &Options,
) -> Result<std::result::Result<Found, Failure>> {
    let mut seeker = Seeker::new(runner, block, needs, copies, options);
    seeker.last_stage = last;
    if let Some(before) = before.filter(|before| before.reseeded.is_empty()) {
        let sets = options.candidates();
        seeker.failed = sets.iter().position(|set| *set == before.values).unwrap_or_default();
        seeker.pages_a_copy = before.pages.len() as f64 / before.copies as f64;
    }
    seeker.run()
}

/// Runs the copies as they are measured, and compares what that leaves behind with what the
/// traced run left: the same pages, the same registers, the same memory. Both hold the same
/// instructions, so that the addresses in between were the same too.
///
/// # Errors
/// The sandbox cannot be started.
pub fn replay(
    runner: &mut Runner,
    block: &Block,
    needs: &Needs,
    found: &Found,
    options: &Options,
) -> Result<std::result::Result<(), Failure>> {
    let shape = found.shape(block, needs, found.copies, BLOCK_CODE);
    let program = forms::replay(&shape);
    runner.worker()?.write(program.start, &program.bytes);
    let (ended, _) = runner.run(&[Segment { entry: program.start, repeat: 1 }], &[(0, 1)])?;
    if ended != Ended::Done {
        return Ok(Err(explain(&ended, &program, options.pages_allowed())));
    }
    Ok(same_end(runner, block, found))
}

fn same_end(runner: &Runner, block: &Block, found: &Found) -> std::result::Result<(), Failure> {
    let differs = |what: &str| {
        Err(Failure::of_all(format!(
            "{what} than the run that found its pages: the block depends on something outside its \
             registers and memory"
        )))
    };
    if runner.pages().as_ref() != Some(&found.pages) {
        return differs("the measured run touches other pages");
    }
    let moody = |inst: &Inst| {
        use Mnemonic as M;
        matches!(
            inst.decoded.mnemonic(),
            M::Rdtsc | M::Rdtscp | M::Rdpid | M::Fnstenv | M::Fstenv | M::Fnsave | M::Fsave
        )
    };
    if block.instructions.iter().any(moody) {
        return Ok(());
    }
    if runner.end_registers() != found.end.registers {
        return differs("the measured run ends with other registers");
    }
    if !runner.holds(&found.end.memory) {
        return differs("the measured run leaves other memory");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::program::Shape;
    use isa::code::parse_hex;

    /// A block whose jump is taken in every other copy: where the measured code would take one,
    /// it is sent to an instruction that traps.
    #[test]
    fn no_copy_of_the_measured_run_takes_its_final_jump() {
        // xor rax,1; test al,1; jnz (near)
        let block = Block::decode(&parse_hex("4883f001 a801 0f8500000000").unwrap()).unwrap();
        let (needs, options, copies) = (Needs::of(&block), Options::default(), 20);
        let mut runner = Runner::new(Default::default(), None, false);
        let found = discover(&mut runner, &block, &needs, copies, &options).unwrap().unwrap();
        let alternating: Vec<bool> = (0..copies).map(|copy| copy % 2 == 0).collect();
        assert_eq!(found.taken, alternating);
        let run = |runner: &mut Runner, taken: &[bool]| {
            let shape = Shape {
                block: &block,
                needs: &needs,
                copies,
                lines: false,
                reseeded: &[],
                taken,
                start: BLOCK_CODE,
                rip_area: found.rip_area,
            };
            let mut program = forms::replay(&shape);
            let trap = program.end();
            for (offset, _, instruction) in &program.origins {
                if *instruction == 2 {
                    let field = offset + 2 - program.start;
                    let distance = (trap - (offset + 6)) as i32;
                    program.bytes[field..field + 4].copy_from_slice(&distance.to_le_bytes());
                }
            }
            program.bytes.extend([0x0f, 0x0b]); // ud2
            runner.worker().unwrap().write(program.start, &program.bytes);
            runner.run(&[Segment { entry: program.start, repeat: 1 }], &[(0, 1)]).unwrap().0
        };
        assert_eq!(run(&mut runner, &found.taken), Ended::Done);
        let trapped = run(&mut runner, &vec![false; copies]);
        assert!(matches!(trapped, Ended::Fault(fault) if fault.signal == libc::SIGILL));
    }

    #[test]
    fn a_block_that_reads_what_is_never_set_up_is_not_passed_as_repeatable() {
        // add rax,rbx; mov rcx,[rax]
        let block = Block::decode(&parse_hex("4801d8 488b08").unwrap()).unwrap();
        let (needs, options) = (Needs::of(&block), Options::default());
        let mut runner = Runner::new(Default::default(), None, false);
        let mut found = discover(&mut runner, &block, &needs, 4, &options).unwrap().unwrap();
        runner.lines(&found.lines).unwrap();
        let again = replay(&mut runner, &block, &needs, &found, &options).unwrap();
        assert_eq!(again, Ok(()));
        // As if the traced run had ended elsewhere.
        found.end.registers[1] ^= 1;
        let again = replay(&mut runner, &block, &needs, &found, &options).unwrap();
        assert!(again.unwrap_err().reason.contains("registers"));
        found.pages.pop();
        let again = replay(&mut runner, &block, &needs, &found, &options).unwrap();
        assert!(again.unwrap_err().reason.contains("pages"));
    }
}
