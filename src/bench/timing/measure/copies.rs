//! Forms of copies of a block: straight or in a loop without fences, and as the body of a loop.

use super::form::Form;
use crate::harness::loop_counter::LoopCounter;
use crate::harness::{Program, RequiredState, forms};
use crate::initial::run_setup::RunSetup;
use crate::runner::{BLOCK_CODE, Segment};
use crate::sandbox::layout as at;
use isa::code::{Block, Inst};

/// Iterations of the loop form before the timed ones: memory predictors have to learn it.
const LOOP_WARM: u32 = 48;
/// Repetitions of the unrolled form in a loop without fences before the timed ones.
const COUNTED_WARM: u32 = 2;
/// Timed runs' worth of repetitions before a timed run of 512-bit instructions: where none ran for a while, a Golden
/// Cove does them at half the rate for more than 1,000 cycles, which is most of a short run (2026-11-30).
const WIDE_WARM: u32 = 8;
/// Repetitions of a loop in a first look.
const LOOK: u32 = 8;

/// How the unrolled form repeats its copies.
#[derive(Debug, Clone, Copy)]
pub enum Repeat {
    /// Registers and memory restored and fences around every repetition: every copy finds the
    /// addresses of the trace.
    Restored,
    /// In a loop without fences, counted like this: for blocks whose
    /// addresses stay the same.
    Counted(LoopCounter),
}

impl Repeat {
    /// Repetitions of the copies for a first look: start-up would be much of the time of a few hundred instructions.
    pub fn look(self) -> u32 {
        match self {
            Self::Restored => 1,
            Self::Counted(_) => LOOK,
        }
    }
}

/// Copies of a form and their repetitions.
#[derive(Debug, Clone, Copy)]
pub struct Copies {
    /// Number of copies.
    pub number: usize,
    /// In which way they repeat.
    pub how: Repeat,
    /// Number of repetitions.
    pub repeat: u32,
}

impl Copies {
    /// Copies of a run from end to end: fences end each repetition.
    pub fn in_a_run(self) -> usize {
        match self.how {
            Repeat::Restored => self.number,
            Repeat::Counted(_) => self.number * self.repeat as usize,
        }
    }
}

/// The unrolled form: `copies` against about half as many, each `repeat` times.
pub fn unrolled(
    block: &Block,
    required_state: &RequiredState,
    setup: &RunSetup,
    copies: Copies,
    offsets: &[usize],
) -> Form {
    let Copies { number, how, repeat } = copies;
    let between = copies_between(number, block.bytes.len());
    let mut start = BLOCK_CODE;
    let least = match how {
        Repeat::Restored => forms::WARM,
        Repeat::Counted(_) => COUNTED_WARM,
    };
    let warm = warm(block, least, repeat);
    let mut form =
        Form::of(f64::from(repeat) * between as f64, f64::from(repeat + warm) * between as f64);
    form.learns = block.instructions.iter().any(isa::code::Inst::writes_memory);
    let build = |copies, start| {
        let shape = setup.shape(block, required_state, copies, start);
        match how {
            Repeat::Restored => forms::unrolled(&shape, warm),
            Repeat::Counted(counter) => forms::looped(&shape, counter, warm),
        }
    };
    for offset in offsets {
        let long = build(number, start + offset);
        let short = build(number - between, long.end().next_multiple_of(64) + 64 + offset);
        start = short.end().next_multiple_of(64) + 64;
        if start > at::CODE + at::CODE_SIZE {
            break;
        }
        let segment = |program: &Program| Segment { entry: program.start, repeat };
        form.pairs.push((segment(&long), segment(&short)));
        form.programs.extend([long, short]);
    }
    form
}

/// Repetitions before `timed` ones, `least` or what 512-bit instructions need.
fn warm(block: &Block, least: u32, timed: u32) -> u32 {
    // Not `Inst::registers`: a write of 256 bits zeroes the rest of the register.
    let wide =
        |inst: &Inst| (0..inst.decoded.op_count()).any(|i| inst.decoded.op_register(i).is_zmm());
    match block.instructions.iter().any(wide) {
        true => least.max(WIDE_WARM * timed),
        false => least,
    }
}

/// Copies that the short run omits: about half, such that both runs end at the same offset within a cache line,
/// which otherwise affects the time.
fn copies_between(copies: usize, length: usize) -> usize {
    let half = copies / 2;
    let mut step = (64 >> length.trailing_zeros().min(6)).max(1);
    while step > 1 && (half / step * step) * 3 < copies {
        step /= 2;
    }
    half / step * step
}

/// The loop form: `copies` in the body, `long` against half as many iterations.
pub fn looped(
    block: &Block,
    required_state: &RequiredState,
    setup: &RunSetup,
    copies: usize,
    counter: LoopCounter,
    long: u32,
) -> Form {
    let between = f64::from(long - long / 2) * copies as f64;
    let mut form = Form::of(between, between);
    form.learns = block.instructions.iter().any(isa::code::Inst::writes_memory);
    let mut start = BLOCK_CODE;
    for offset in [0, 32] {
        let shape = setup.shape(block, required_state, copies, start + offset);
        let program = forms::looped(&shape, counter, warm(block, LOOP_WARM.min(long), long));
        start = program.end().next_multiple_of(64) + 64;
        let segment = |repeat| Segment { entry: program.start, repeat };
        form.pairs.push((segment(long), segment(long / 2)));
        form.programs.push(program);
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_runs_hold_the_repetitions_before_the_time_stamp() {
        let block = Block::decode(&[0x48, 0x01, 0xd8]).unwrap();
        let setup = RunSetup {
            values: crate::Values::default(),
            copies: 128,
            pages: Vec::new(),
            lines: Vec::new(),
            taken: Vec::new(),
            reseeded: Vec::new(),
            accesses: Vec::new(),
            complete: true,
            without_faults: Default::default(),
            end: Default::default(),
            rip_area: 0,
        };
        let required_state = RequiredState::of(&block);
        let iterations = |how| {
            let copies = Copies { number: 128, how, repeat: 5 };
            let form = unrolled(&block, &required_state, &setup, copies, &[0]);
            (form.between, form.between_whole_runs())
        };
        // 64 copies apart, five times and one or two times before.
        assert_eq!(iterations(Repeat::Restored), (320.0, 384.0));
        assert_eq!(iterations(Repeat::Counted(LoopCounter::Memory)), (320.0, 448.0));
        // Long and short loops warm up alike.
        let form = looped(&block, &required_state, &setup, 4, LoopCounter::Memory, 100);
        assert_eq!((form.between, form.between_whole_runs()), (200.0, 200.0));
    }

    #[test]
    fn wide_instructions_run_for_a_while_before_the_timed_ones() {
        let block = |hex: &str| Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap();
        assert_eq!(warm(&block("4801d8"), 1, 5), 1);
        assert_eq!(warm(&block("c5f558c2"), 1, 5), 1); // vaddps ymm0,ymm1,ymm2
        assert_eq!(warm(&block("62f1744858c2"), 1, 5), 40); // vaddps zmm0,zmm1,zmm2
    }
}
