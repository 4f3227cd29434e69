//! One iteration of a loop body in terms of the registers at its start: the addresses it accesses,
//! what registers hold at its end, and what its back edge depends on.
//!
//! Arithmetic is taken to be exact: a 32-bit sum is the sum. Whoever plans with these forms has to
//! check the plan by running it.

use super::transfer::{WriteSummary, address, definitions, operand};
use super::value::Value;
use iced_x86::{
    ConditionCode, EncodingKind, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
};

/// A sum of multiples of terms, and a constant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Linear {
    /// Terms with their factors, each term once.
    pub terms: Vec<(Term, i64)>,
    /// The constant.
    pub constant: i64,
}

/// A term of a [`Linear`] form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Term {
    /// A general-purpose register at the start of the iteration, by encoding number.
    Register(u8),
    /// The loaded value.
    Loaded(Box<Loaded>),
    /// A value that is not modelled.
    Unknown {
        /// Its greatest value, where a mask or width limits it.
        most: Option<u64>,
    },
}

/// A load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// Its address.
    pub address: Linear,
    /// Its size: 1, 2, 4 or 8.
    pub bytes: u8,
}

/// A memory operand of an iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinearAccess {
    /// The instruction, from 0.
    pub instruction: usize,
    /// Its address; relative to the instruction pointer where it is a constant.
    pub address: Linear,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether it writes.
    pub writes: bool,
    /// Whether the instruction faults unless the address is a multiple of `bytes`.
    pub aligned: bool,
}

/// Condition of the back edge: taken while `difference` compared with 0 satisfies `again`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// First minus second operand of the comparison.
    pub difference: Linear,
    /// The condition.
    pub again: ConditionCode,
}

/// The symbolic effect of one iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iteration {
    /// Memory operands in the order of the code.
    pub accesses: Vec<LinearAccess>,
    /// General-purpose registers at its end, by encoding number.
    pub after: Vec<Linear>,
    /// Condition of its final conditional jump, where that is modelled.
    pub exit: Option<Exit>,
}

impl Linear {
    /// The factor of a register.
    pub fn factor(&self, register: u8) -> i64 {
        let own = self.terms.iter().find(|(term, _)| *term == Term::Register(register));
        own.map_or(0, |(_, factor)| *factor)
    }

    /// The registers in it with their factors.
    pub fn registers(&self) -> impl Iterator<Item = (u8, i64)> {
        self.terms.iter().filter_map(|(term, factor)| match term {
            Term::Register(number) => Some((*number, *factor)),
            _ => None,
        })
    }

    fn add(&mut self, other: Self, factor: i64) {
        for (term, own) in other.terms {
            let own = own.wrapping_mul(factor);
            match self.terms.iter_mut().find(|(known, _)| *known == term) {
                // Two unknown values are not the same one.
                Some(known) if !matches!(term, Term::Unknown { .. }) => {
                    known.1 = known.1.wrapping_add(own);
                }
                _ => self.terms.push((term, own)),
            }
        }
        self.terms.retain(|term| term.1 != 0);
        self.constant = self.constant.wrapping_add(other.constant.wrapping_mul(factor));
    }

    fn of(value: &Value) -> Self {
        let unknown = |most| Self { terms: vec![(Term::Unknown { most }, 1)], constant: 0 };
        let whole = |term| Self { terms: vec![(term, 1)], constant: 0 };
        match value {
            Value::Register(number) => whole(Term::Register(*number)),
            Value::Load(address, bytes) => {
                whole(Term::Loaded(Box::new(Loaded { address: Self::of(address), bytes: *bytes })))
            }
            Value::Sum(terms, constant) => {
                let mut sum = Self { terms: Vec::new(), constant: constant.cast_signed() };
                for (value, factor) in terms {
                    sum.add(Self::of(value), factor.cast_signed());
                }
                sum
            }
            Value::And(inner, mask) if *mask == u64::from(u32::MAX) => Self::of(inner).in_32_bits(),
            // A character in the low part of a register that holds nothing else.
            Value::And(inner, 0xff | 0xffff) if matches!(**inner, Value::Register(_)) => {
                Self::of(inner)
            }
            Value::Signed(inner, 32..) => Self::of(inner).in_32_bits(),
            Value::Signed(inner, _) if matches!(**inner, Value::Load(..)) => Self::of(inner),
            other => unknown(other.upper_bound()),
        }
    }

    /// With factors and constant as signed numbers of 32 bits.
    fn in_32_bits(mut self) -> Self {
        let signed = |number: i64| i64::from(number as i32);
        self.terms.iter_mut().for_each(|term| term.1 = signed(term.1));
        self.constant = signed(self.constant);
        self
    }
}

/// Registers as forward execution knows them.
struct State([Value; 16]);

impl State {
    fn now(&self, value: &Value) -> Value {
        let now = value.replaced(&mut |part| match part {
            Value::Register(number) => Some(self.0[usize::from(*number)].clone()),
            _ => None,
        });
        if now.is_too_large() { Value::Opaque } else { now }
    }
}

impl Iteration {
    /// The effect of executing `instructions` from the first to the last.
    pub fn of(instructions: &[Instruction]) -> Self {
        let mut facts = InstructionInfoFactory::new();
        let mut state = State(std::array::from_fn(|number| Value::Register(number as u8)));
        let (mut accesses, mut compared) = (Vec::new(), None);
        for (number, instruction) in instructions.iter().enumerate() {
            if let Some(access) = access(number, instruction, &state, &mut facts) {
                accesses.push(access);
            }
            let before = comparison(instruction).map(|value| Linear::of(&state.now(&value)));
            let summary = WriteSummary::of(instruction, &mut facts);
            let new: Vec<(u8, Value)> = definitions(instruction, summary)
                .into_iter()
                .map(|(register, value)| (register, state.now(&value)))
                .collect();
            for (register, value) in new {
                state.0[usize::from(register)] = value;
            }
            if summary.flags {
                compared = before.or_else(|| result(instruction, &state));
            }
        }
        let again = instructions.last().map(Instruction::condition_code);
        let exit = again
            .filter(|code| *code != ConditionCode::None)
            .zip(compared)
            .map(|(again, difference)| Exit { difference, again });
        Self { accesses, after: state.0.iter().map(Linear::of).collect(), exit }
    }

    /// By how much an iteration changes a register, if always by the same.
    pub fn step(&self, register: u8) -> Option<i64> {
        let after = self.after.get(usize::from(register))?;
        let own = after.terms == [(Term::Register(register), 1)];
        own.then_some(after.constant)
    }
}

/// The difference that a comparison forms, before it.
fn comparison(instruction: &Instruction) -> Option<Value> {
    match instruction.mnemonic() {
        Mnemonic::Cmp => Some(operand(instruction, 0).minus(operand(instruction, 1))),
        Mnemonic::Test if operand(instruction, 0) == operand(instruction, 1) => {
            Some(operand(instruction, 0))
        }
        _ => None,
    }
}

/// The result whose flags an instruction sets, after it.
fn result(instruction: &Instruction, state: &State) -> Option<Linear> {
    let whole = matches!(
        instruction.mnemonic(),
        Mnemonic::Sub | Mnemonic::Add | Mnemonic::Dec | Mnemonic::Inc | Mnemonic::And
    ) && instruction.op0_kind() == OpKind::Register;
    whole.then(|| Linear::of(&state.now(&operand(instruction, 0))))
}

fn access(
    number: usize,
    instruction: &Instruction,
    state: &State,
    facts: &mut InstructionInfoFactory,
) -> Option<LinearAccess> {
    if !(0..instruction.op_count()).any(|i| instruction.op_kind(i) == OpKind::Memory)
        || matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop)
    {
        return None;
    }
    let address = address(instruction).map_or(Value::Opaque, |address| state.now(&address));
    let info = facts.info(instruction);
    let used = info.used_memory().iter().filter(|memory| memory.access() != OpAccess::NoMemAccess);
    let writes = used.clone().any(|memory| {
        use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
        matches!(memory.access(), Write | CondWrite | ReadWrite | ReadCondWrite)
    });
    Some(LinearAccess {
        instruction: number,
        address: Linear::of(&address),
        bytes: instruction.memory_size().size() as u64,
        writes,
        aligned: needs_alignment(instruction),
    })
}

/// Whether the processor refuses an address that is not aligned (Intel SDM 1, 14.9: explicitly aligned
/// moves, and legacy SSE operands of 16 bytes but for unaligned moves).
fn needs_alignment(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    let legacy = instruction.op_code().encoding() == EncodingKind::Legacy;
    match instruction.mnemonic() {
        M::Movups | M::Movupd | M::Movdqu | M::Lddqu => false,
        M::Vmovaps | M::Vmovapd | M::Vmovdqa | M::Vmovdqa32 | M::Vmovdqa64 => true,
        M::Vmovntps | M::Vmovntpd | M::Vmovntdq | M::Vmovntdqa => true,
        _ => {
            let vector = (0..instruction.op_count()).any(|i| {
                instruction.op_kind(i) == OpKind::Register
                    && instruction.op_register(i).is_vector_register()
            });
            legacy && vector && instruction.memory_size().size() == 16
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{Block, assemble};

    fn of(text: &str) -> Iteration {
        let block = Block::decode(&assemble(text, crate::code::Syntax::Intel).unwrap()).unwrap();
        Iteration::of(&block.instructions.iter().map(|i| i.decoded).collect::<Vec<_>>())
    }

    const RAX: u8 = 0;
    const RDX: u8 = 2;
    const RSI: u8 = 6;
    const RDI: u8 = 7;

    #[test]
    fn a_counted_loop_has_its_steps_and_its_difference() {
        let i = of(
            "again: mov ecx,[rsi+rax*4+8]; add [rdi+rax*4],ecx; add rax,2; cmp rax,rdx; jb again",
        );
        assert_eq!((i.step(RAX), i.step(RSI), i.step(1)), (Some(2), Some(0), None));
        assert_eq!(i.accesses.len(), 2);
        assert_eq!((i.accesses[0].address.factor(RAX), i.accesses[0].address.constant), (4, 8));
        assert!(!i.accesses[0].writes && i.accesses[1].writes);
        let exit = i.exit.unwrap();
        // rax + 2 − rdx
        assert_eq!((exit.difference.factor(RAX), exit.difference.factor(RDX)), (1, -1));
        assert_eq!((exit.difference.constant, exit.again), (2, ConditionCode::b));
    }

    #[test]
    fn counting_down_in_32_bits_is_a_step_of_minus_one() {
        let i = of("again: dec ecx; jne again");
        assert_eq!(i.step(1), Some(-1));
        assert_eq!(i.exit.unwrap().difference.constant, -1);
        let i = of("again: sub ecx,1; jne again");
        assert_eq!(i.exit.unwrap().difference.constant, -1);
    }

    #[test]
    fn what_is_loaded_is_a_term_of_an_address() {
        // A histogram: the byte loaded is the index.
        let i = of(
            "again: movzx eax,byte ptr [rsi]; inc rsi; inc dword ptr [rdi+rax*4]; cmp rsi,rdx; jne again",
        );
        let (term, factor) =
            i.accesses[1].address.terms.iter().find(|t| !matches!(t.0, Term::Register(_))).unwrap();
        let Term::Loaded(loaded) = term else { panic!("{term:?}") };
        assert_eq!((loaded.bytes, loaded.address.factor(RSI), *factor), (1, 1, 4));
        assert_eq!(i.accesses[1].address.factor(RDI), 1);
        // A list: the next address is what is loaded.
        let i = of("again: mov rdi,[rdi+8]; test rdi,rdi; jne again");
        assert!(matches!(&i.after[7].terms[..], [(Term::Loaded(next), 1)] if next.bytes == 8));
        // A table of 256 entries.
        let i = of("again: imul eax,eax,77; movzx ecx,al; xor edx,[rsi+rcx*4]; dec edi; jne again");
        let bounded = |t: &(Term, i64)| t.0 == Term::Unknown { most: Some(255) } && t.1 == 4;
        assert!(i.accesses[0].address.terms.iter().any(bounded));
    }
}
