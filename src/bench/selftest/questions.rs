//! The code of each test: a loop whose body is what is asked about.

use super::random::{
    Order, among, branch, call, call_of, jump, jump_to, nested, objects, random, repeating,
};
use crate::clock::mixes::{LENGTH, MIXES};
use crate::harness::emitter::{Emitter, RCX};
use crate::harness::skeleton::Filler;
use crate::sandbox::layout::{self as at, context};
use crate::sandbox::return_offset;
use tma::self_test::LENGTHS;

/// A nop of five bytes: as long as the instructions of a mix.
const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0, 0];
/// A nop of seven bytes: the legacy decoders read 16 bytes or less in a cycle, op caches deliver more.
const NOP7: [u8; 7] = [0x0f, 0x1f, 0x80, 0, 0, 0, 0];
/// Instructions of nops and of straight code after a fence.
const STRAIGHT: usize = 192;
/// Instructions of a short and of a long loop.
pub const LOOPS: (usize, usize) = (48, 576);
/// Pairs of a store and a load: with 8 no false dependence shows on Zen 5, with 48 it does.
const PAIRS: usize = 48;

/// Distances from load to store to test, after one that never matters.
pub const DISTANCES: [u32; 4] = [0x400, 0x800, 0x1000, 0x2000];
/// The one that never matters.
pub const NEAR: u32 = 0x40;

/// Bits of a random number that decide a branch: all are 0 always, half of the time, a quarter, an eighth.
pub const NEVER: u8 = 0;
/// No bits of the number: a branch that is always taken, which differs in time from one that never is.
pub const ALWAYS: u8 = 0xff;
pub const HALF: u8 = 1;
pub const QUARTER: u8 = 3;
pub const EIGHTH: u8 = 7;
/// And more rarely: once in 16, 32 and 64 times.
pub const SIXTEENTH: u8 = 15;
pub const THIRTY_SECOND: u8 = 31;
pub const SIXTY_FOURTH: u8 = 63;
/// A bit that is independent of [`HALF`].
pub const OTHER: u8 = 2;

/// A sequence that every predictor remembers: its logarithm; and one that never repeats.
pub const SHORT: u8 = 4;
pub const ENDLESS: u8 = 64;
/// Minimum iterations of a repeating sequence timed at once; also those of one that never repeats.
const LEARNT: u32 = 1 << 13;

/// Call sites of 64 nested calls, one bit each, for two places: all from one, alternating, and in a pattern of
/// five that does not repeat in 32.
pub const ONE_PLACE: u64 = u64::MAX;
pub const ALTERNATE: u64 = 0xaaaa_aaaa_aaaa_aaaa;
pub const FIVES: u64 = 0x5294_a529_4a52_94a5;

/// The code of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// A mix, by its number.
    Mix(usize),
    /// Nops of five bytes.
    Nops,
    /// Constants, each followed by a nop.
    NopsBetween,
    /// Moves between registers, each followed by an addition to the register moved to.
    Moves,
    /// Moves as they replace instructions where nops share slots.
    Fillers,
    /// A fence, nops of seven bytes: `mfence` or `lfence`, with a jump between or not.
    Fence {
        /// `mfence`; else `lfence`.
        memory: bool,
        /// Whether a jump to an aligned address follows.
        jump: bool,
    },
    /// A loop of this many instructions of the first mix.
    Loop(usize),
    /// A jump to this offset in a line, and straight code, after an `lfence`.
    Target(usize),
    /// Stores this many bytes above the loads.
    Distance(u32),
    /// A branch that is not taken where all these bits of a random number are 0.
    Branch(u8),
    /// `Branch` after branches of constant direction, so that the history holds few random outcomes.
    Among(u8),
    /// `Among` for a second branch, after one on another bit of the number.
    Second(u8),
    /// An indirect jump to the rarer of two targets where all these bits of a random number are 0.
    Jump(u8),
    /// An indirect call of the rarer of two functions there, through an object and its table: two loads more.
    Call(u8),
    /// `Call` with several functions, each as often.
    Calls(Order),
    /// Two functions in turn that return at different distances from their starts.
    CallsApart,
    /// A jump with several targets, each as often, that go on into each other.
    Jumps(Order),
    /// A fair branch on a random sequence that repeats after two to this power.
    Repeating(u8),
    /// Nested calls from these places.
    Nested(u64),
    /// Additions of a constant, each to the result of the last.
    ConstantChain,
    /// Moves between registers, each of the result of the last.
    MoveChain,
}

use Order::{InTurn, Random};
use Question::{
    Among, Branch, Call, Calls, CallsApart, ConstantChain, Distance, Fence, Fillers, Jump, Jumps,
    Loop, Mix, MoveChain, Moves, Nested, Nops, NopsBetween, Repeating, Second, Target,
};

/// All tests.
pub const QUESTIONS: &[Question] = &[
    Mix(0),
    Mix(1),
    Mix(2),
    Mix(3),
    Mix(4),
    Nops,
    NopsBetween,
    Moves,
    Fillers,
    Fence { memory: true, jump: false },
    Fence { memory: true, jump: true },
    Fence { memory: false, jump: false },
    Fence { memory: false, jump: true },
    Loop(LOOPS.0),
    Loop(LOOPS.1),
    Target(32),
    Target(60),
    Distance(NEAR),
    Distance(DISTANCES[0]),
    Distance(DISTANCES[1]),
    Distance(DISTANCES[2]),
    Distance(DISTANCES[3]),
    ConstantChain,
    MoveChain,
    Branch(NEVER),
    Branch(ALWAYS),
    Branch(HALF),
    Branch(QUARTER),
    Branch(EIGHTH),
    Branch(SIXTEENTH),
    Branch(THIRTY_SECOND),
    Branch(SIXTY_FOURTH),
    Among(NEVER),
    Among(ALWAYS),
    Among(HALF),
    Among(QUARTER),
    Among(EIGHTH),
    Among(SIXTEENTH),
    Among(THIRTY_SECOND),
    Among(SIXTY_FOURTH),
    Second(NEVER),
    Second(OTHER),
    Jump(NEVER),
    Jump(HALF),
    Jump(QUARTER),
    Jump(EIGHTH),
    Call(NEVER),
    Call(HALF),
    Calls(InTurn(2)),
    CallsApart,
    Calls(InTurn(4)),
    Calls(InTurn(8)),
    Calls(Random(4)),
    Calls(Random(8)),
    Jumps(InTurn(2)),
    Jumps(InTurn(4)),
    Jumps(InTurn(8)),
    Jumps(Random(4)),
    Jumps(Random(8)),
    Nested(ONE_PLACE),
    Nested(ALTERNATE),
    Nested(FIVES),
    Repeating(SHORT),
    Repeating(ENDLESS),
    Repeating(LENGTHS[0]),
    Repeating(LENGTHS[1]),
    Repeating(LENGTHS[2]),
    Repeating(LENGTHS[3]),
    Repeating(LENGTHS[4]),
    Repeating(LENGTHS[5]),
    Repeating(LENGTHS[6]),
    Repeating(LENGTHS[7]),
    Repeating(LENGTHS[8]),
];

impl Question {
    /// As the file of results has it.
    pub fn name(self) -> String {
        match self {
            Mix(i) => format!("mix {}", MIXES[i].name),
            Nops => "nops".to_owned(),
            NopsBetween => "constants and nops".to_owned(),
            Moves => "moves and additions".to_owned(),
            Fillers => "moves to one register".to_owned(),
            Fence { memory, jump } => {
                let fence = if memory { "mfence" } else { "lfence" };
                format!("{fence}{}", if jump { " and jump" } else { "" })
            }
            Loop(instructions) => format!("loop of {instructions}"),
            Target(offset) => format!("target at {offset}"),
            Distance(bytes) => format!("store {bytes:#x} above load"),
            Branch(bits) => format!("branch on {bits} of a random number"),
            Among(bits) => format!("branch on {bits} of a random number among others"),
            Second(bits) => format!("branch on {bits} of a random number after another"),
            Jump(bits) => format!("indirect jump on {bits} of a random number"),
            Call(bits) => format!("call through an object on {bits} of a random number"),
            // As files of version 9 have it.
            Calls(InTurn(2)) => "call through two objects in turn".to_owned(),
            Calls(order) => format!("call of {}", order.name()),
            CallsApart => "call of two in turn that return apart".to_owned(),
            Jumps(order) => format!("indirect jump to {}", order.name()),
            Repeating(ENDLESS) => "branch on a sequence without end".to_owned(),
            Repeating(bits) => format!("branch on a sequence of {}", 1_u32 << bits),
            Nested(places) => format!("nested calls from {places:#x}"),
            ConstantChain => "chain of additions of a constant".to_owned(),
            MoveChain => "chain of moves".to_owned(),
        }
    }

    /// Instructions of one iteration, without fences, jumps and the loop's own.
    pub fn instructions(self) -> usize {
        match self {
            Mix(_) => LENGTH,
            Nops | Fillers | Fence { .. } | Target(_) | ConstantChain | MoveChain => STRAIGHT,
            NopsBetween | Moves => 2 * STRAIGHT,
            Loop(instructions) => instructions,
            Distance(_) => PAIRS,
            _ => 1,
        }
    }

    /// Whether its time varies by chance.
    pub fn is_random(self) -> bool {
        matches!(
            self,
            Branch(_)
                | Among(_)
                | Second(_)
                | Jump(_)
                | Call(_)
                | Calls(_)
                | CallsApart
                | Jumps(_)
                | Repeating(ENDLESS)
        )
    }

    /// Iterations that are timed at once where the predictor must learn the sequence: a few times its length.
    pub fn learnt(self) -> Option<u32> {
        match self {
            Repeating(bits @ ..=15) => Some((4 << bits).max(LEARNT)),
            Repeating(ENDLESS) => Some(LEARNT),
            Repeating(bits) => Some(2 << bits),
            _ => None,
        }
    }

    /// Cycles of one iteration, roughly, to choose how many to run.
    pub fn about(self) -> usize {
        match self {
            Fence { .. } | Target(_) => 64 + STRAIGHT / 6,
            Distance(_) => PAIRS,
            // Many iterations, so that they hold about as many mispredictions each time.
            Repeating(_) => 1,
            _ if self.is_random() => 1,
            Nested(_) => 128,
            ConstantChain | MoveChain => STRAIGHT,
            _ => self.instructions() / 6,
        }
    }

    fn body(self, code: &mut Emitter) {
        let repeat = |code: &mut Emitter, bytes: &[u8], count: usize| {
            (0..count).for_each(|_| code.raw(bytes));
        };
        match self {
            Mix(i) => code.raw(&MIXES[i].bytes()),
            Nops => repeat(code, &NOP5, STRAIGHT),
            NopsBetween => (0..STRAIGHT).for_each(|i| {
                // mov eax, 1; mov edx, 1; mov ebp, 1; mov esi, 1, each in turn
                code.raw(&[[0xb8, 0xba, 0xbd, 0xbe][i % 4], 1, 0, 0, 0]);
                code.raw(&NOP5);
            }),
            Moves => (0..STRAIGHT).for_each(|i| {
                let register = (i % 4) as u8;
                // mov r12..r15, rbx; add r12..r15, 1 with four bytes of constant: five bytes each
                code.raw(&[0x49, 0x89, 0xdc + register, 0x49, 0x81, 0xc4 + register, 1, 0, 0, 0]);
            }),
            // mov r12d, ebx
            Fillers => repeat(code, &Filler::Move { to: 12, from: 3 }.bytes(NOP5.len()), STRAIGHT),
            Fence { memory, jump } => {
                match memory {
                    true => code.raw(&[0x0f, 0xae, 0xf0]),
                    false => code.fence(),
                }
                if jump {
                    code.jump_to_line();
                }
                repeat(code, &NOP7, STRAIGHT);
            }
            Target(offset) => {
                code.fence();
                code.jump_into_line(offset);
                repeat(code, &NOP7, STRAIGHT);
            }
            Loop(count) => (0..count).for_each(|i| code.raw(&MIXES[0].instruction(i))),
            Distance(bytes) => (0..PAIRS).for_each(|_| {
                code.raw(&[0x48, 0x89, 0xaf]); // mov [rdi + bytes], rbp
                code.raw(&bytes.to_le_bytes());
                code.raw(&[0x48, 0x8b, 0x17]); // mov rdx, [rdi]
                code.raw(&[0x48, 0x01, 0xd6]); // add rsi, rdx
            }),
            Branch(bits) => {
                random(code);
                branch(code, bits, bits == ALWAYS);
            }
            Among(bits) => {
                random(code);
                among(code);
                branch(code, bits, bits == ALWAYS);
            }
            Second(bits) => {
                random(code);
                branch(code, HALF, false);
                branch(code, bits, bits == ALWAYS);
            }
            Jump(bits) => jump(code, bits),
            Call(bits) => call(code, bits),
            Calls(order) => call_of(code, order),
            CallsApart => call_of(code, InTurn(2)),
            Jumps(order) => jump_to(code, order),
            Repeating(bits) => {
                repeating(code, (bits != ENDLESS).then(|| (1 << bits) - 1));
                branch(code, HALF, false);
            }
            Nested(places) => nested(code, places),
            // add r12, 1
            ConstantChain => repeat(code, &[0x49, 0x83, 0xc4, 1], STRAIGHT),
            MoveChain => (0..STRAIGHT / 2).for_each(|_| {
                code.raw(&[0x4d, 0x89, 0xe5, 0x4d, 0x89, 0xec]); // mov r13, r12; mov r12, r13
            }),
        }
    }

    /// The segment: dither, and the body in a loop, timed.
    pub fn segment(self, code: &mut Emitter) {
        code.dither();
        code.warm_up(1);
        let again = code.here();
        code.load32(RCX, at::CONTEXT + context::LEFT);
        code.address(7, at::TRACE); // rdi
        if matches!(self, Call(_) | Calls(_) | CallsApart) {
            objects(code, self == CallsApart);
        }
        if self.is_random() {
            // Numbers that no run had before: Zen 5 learns a sequence of 2,400 that repeats, and
            // mispredictions then seem to cost 8 cycles.
            code.raw(&[0x0f, 0x31]); // rdtsc
            code.raw(&[0x48, 0x31, 0x47, 0x40]); // xor [rdi + 0x40], rax
        }
        match self {
            // imul r8, [rdi + 0x40], 0x5851f42d: time stamps are near each other, and so would the sequences be.
            Repeating(ENDLESS) => code.raw(&[0x4c, 0x69, 0x47, 0x40, 0x2d, 0xf4, 0x51, 0x58]),
            Repeating(_) => code.raw(&[0x45, 0x31, 0xc0]), // xor r8d, r8d
            _ => {}
        }
        code.jump_to_line();
        let head = code.here();
        self.body(code);
        code.decrement_register(RCX);
        code.jump_if_not_zero(head);
        code.timed_again(again);
        code.jump(return_offset());
    }
}
