//! Copies of a block: how many, how they repeat, where they start, and their forms: straight, in a loop without
//! fences, or as the body of a loop.

use super::Form;
use crate::Options;
use crate::harness::loop_counter::LoopCounter;
use crate::harness::{Program, RequiredState, forms};
use crate::initial::run_setup::RunSetup;
use crate::runner::{BLOCK_CODE, Segment};
use crate::sandbox::layout as at;
use iced_x86::Register;
use isa::code::{Block, Inst};

/// Iterations of the loop form before the timed ones: memory predictors have to learn it.
const LOOP_WARM: u32 = 48;
/// Repetitions of the unrolled form in a loop without fences before the timed ones.
const COUNTED_WARM: u32 = 2;
/// Timed runs' worth of repetitions before a timed run of 512-bit instructions: where none ran for a while, a Golden
/// Cove does them at half the rate for more than 1,000 cycles, which is most of a short run (2026-11-30).
const WIDE_WARM: u32 = 4;
/// Repetitions of a loop in a first look.
const LOOK: u32 = 8;

/// Most instructions in unrolled code; more exceed the op cache.
const MAX_INSTRUCTIONS: usize = 960;
/// Most bytes of it.
const MAX_BYTES: usize = 12 * 1024;
/// Most instructions and bytes of the copies that are traced to see whether they may run in a loop.
const LOOP_INSTRUCTIONS: usize = 120;
const LOOP_BYTES: usize = 1024;
/// Cycles of a body whose ends are negligible, and its most bytes.
const BODY: f64 = 300.0;
const BODY_BYTES: usize = 8 * 1024;
/// Most copies; `--copies` takes no more.
pub const MAX_COPIES: usize = 480;
/// Most bytes of them where the user sets their number.
const MAX_USER_BYTES: usize = 64 * 1024;
/// Offsets of the code within a cache line, one per placement.
const OFFSETS: [usize; 6] = [0, 32, 16, 48, 8, 40];

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

/// The number of copies of the unrolled form, which is traced: the most that fit, or the user's.
pub fn copies(block: &Block, options: &Options) -> usize {
    match options.copies {
        Some(copies) => copies.min(MAX_USER_BYTES / block.bytes.len()).max(2),
        None => (MAX_INSTRUCTIONS / block.instructions.len())
            .min(MAX_BYTES / block.bytes.len())
            .clamp(2, MAX_COPIES),
    }
}

/// Copies that suffice in a loop if addresses do not change; `None` if the code must be unrolled.
pub fn few(block: &Block, options: &Options) -> Option<usize> {
    if options.straight || options.copies.is_some() || LoopCounter::of(block).is_err() {
        return None;
    }
    let few =
        (LOOP_INSTRUCTIONS / block.instructions.len()).min(LOOP_BYTES / block.bytes.len()).max(4);
    Some(few).filter(|few| *few < copies(block, options))
}

/// Whether addresses obviously change from copy to copy: pushes and pops do not balance, or an address
/// register is incremented or decremented.
pub fn moves(block: &Block) -> bool {
    use iced_x86::Mnemonic as M;
    let count =
        |mnemonic| block.instructions.iter().filter(|i| i.decoded.mnemonic() == mnemonic).count();
    let mut address = Vec::new();
    for memory in block.instructions.iter().flat_map(|i| &i.memory) {
        address.extend([memory.base(), memory.index()].map(Register::full_register));
    }
    let counts = |inst: &Inst| {
        let decoded = &inst.decoded;
        matches!(decoded.mnemonic(), M::Add | M::Sub | M::Inc | M::Dec)
            && decoded.op_count() > 0
            && (decoded.op_count() == 1 || !decoded.op1_register().is_gpr())
            && decoded.op0_register().is_gpr64()
            && decoded.memory_base() == Register::None
            && address.contains(&decoded.op0_register())
    };
    let set = |inst: &Inst, register: Register| {
        inst.registers.iter().any(|used| {
            used.register().full_register() == register
                && Inst::writes(used.access())
                && !Inst::reads(used.access())
        })
    };
    count(M::Push) != count(M::Pop)
        || block.instructions.iter().any(|inst| {
            let register = inst.decoded.op0_register();
            counts(inst) && !block.instructions.iter().any(|other| set(other, register))
        })
}

/// Ways to repeat the unrolled form, with the number of copies, the best first. If addresses do not
/// change and a loop counter is possible, few copies in a loop suffice, which fit any op cache.
pub fn ways(block: &Block, setup: &RunSetup, options: &Options) -> Vec<(usize, Repeat)> {
    let straight = (setup.copies, Repeat::Restored);
    let counter = match LoopCounter::of(block) {
        Ok(counter) if !options.straight && setup.is_stationary() => counter,
        _ => return vec![straight],
    };
    let few = few(block, options).unwrap_or(setup.copies).min(setup.copies);
    vec![(few, Repeat::Counted(counter)), straight]
}

/// Copies to time, by the cycles that one takes. A loop's ends cost a cycle or two, depending on their offset
/// within a cache line, which differs between the long and the short run: up to a fifth of a dense block's time
/// for bodies of 15 cycles. Blocks that write memory have few copies: memory predictors learn each of them.
pub fn timed(block: &Block, copies: usize, how: Repeat, cycles: f64, options: &Options) -> usize {
    let writes = || block.instructions.iter().any(Inst::writes_memory);
    if matches!(how, Repeat::Restored) || options.copies.is_some() || writes() {
        return copies;
    }
    let most = (MAX_INSTRUCTIONS / block.instructions.len()).min(BODY_BYTES / block.bytes.len());
    copies.max(most.min((BODY / cycles) as usize))
}

/// Offset of each placement within a cache line.
pub fn offsets(options: &Options) -> Vec<usize> {
    match options.align {
        Some(align) => vec![align % 64],
        None => OFFSETS.iter().cycle().take(options.placements.max(1)).copied().collect(),
    }
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
        assert_eq!(warm(&block("62f1744858c2"), 1, 5), 20); // vaddps zmm0,zmm1,zmm2
    }
}
