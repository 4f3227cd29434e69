//! A row of an unwind table: where the registers of the caller are, at one instruction. Also the registers and the
//! copied stack of a sample, by DWARF's numbers.

use crate::sample::Sample;
use gimli::{
    CfaRule, Encoding, EvaluationResult, Expression, RegisterRule, UnwindExpression, UnwindSection,
    UnwindTableRow, Value,
};
use isa::elf::Reader;

/// Most operations of one expression: those of compilers have some dozen.
const MOST_OPERATIONS: u32 = 1000;
/// Most times that an expression asks for a register or memory.
const MOST_QUESTIONS: usize = 256;

/// How the canonical frame address is computed.
#[derive(Debug, Clone)]
pub(crate) enum Cfa {
    /// A register and an offset.
    Offset(u16, i64),
    /// An expression.
    Expression(Box<Expression<Reader>>),
}

/// Where the caller's value of a register is.
#[derive(Debug, Clone)]
enum Rule {
    /// Nowhere; the return address of the outermost function.
    Lost,
    /// In memory, at this distance from the canonical frame address.
    At(i64),
    /// The canonical frame address and this distance.
    Is(i64),
    /// In another register.
    In(u16),
    /// In memory, at the address that an expression has.
    AtResult(Box<Expression<Reader>>),
    /// The value that an expression has.
    Result(Box<Expression<Reader>>),
}

/// Unwind rules at an instruction.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub cfa: Cfa,
    /// By DWARF's number; registers without a rule are unchanged.
    rules: Vec<(u16, Rule)>,
    /// The register that stands for the return address.
    back: u16,
    encoding: Encoding,
    /// Whether the kernel made this frame: the caller was interrupted, and has not called.
    pub is_signal: bool,
}

/// Why a frame has no caller that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It is the outermost.
    Outermost,
    /// A value is needed from outside the copied stack.
    OutsideCopy,
    /// A register is not known, or an expression cannot be evaluated.
    Unknown,
}

impl Row {
    /// A row of a table in `section`.
    pub fn new<S: UnwindSection<Reader>>(
        row: &UnwindTableRow<usize>,
        section: &S,
        entry: &gimli::CommonInformationEntry<Reader>,
    ) -> Option<Self> {
        let read = |text: &UnwindExpression<usize>| text.get(section).ok().map(Box::new);
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Cfa::Offset(register.0, *offset),
            CfaRule::Expression(text) => Cfa::Expression(read(text)?),
        };
        let back = entry.return_address_register().0;
        let mut rules = Vec::new();
        for (register, rule) in row.registers() {
            if usize::from(register.0) >= MOST {
                continue;
            }
            rules.push((
                register.0,
                match rule {
                    RegisterRule::Undefined => Rule::Lost,
                    RegisterRule::Offset(offset) => Rule::At(*offset),
                    RegisterRule::ValOffset(offset) => Rule::Is(*offset),
                    RegisterRule::Register(other) => Rule::In(other.0),
                    RegisterRule::Expression(text) => Rule::AtResult(read(text)?),
                    RegisterRule::ValExpression(text) => Rule::Result(read(text)?),
                    _ => continue,
                },
            ));
        }
        let is_signal = entry.is_signal_trampoline();
        Some(Self { cfa, rules, back, encoding: entry.encoding(), is_signal })
    }

    /// The registers of the caller.
    pub fn caller(&self, now: &Registers, stack: &Stack<'_>) -> Result<Registers, Stop> {
        let cfa = match &self.cfa {
            Cfa::Offset(register, offset) => {
                now.get(*register).ok_or(Stop::Unknown)?.wrapping_add_signed(*offset)
            }
            Cfa::Expression(text) => self.evaluate(text, None, now, stack)?,
        };
        let mut caller = *now;
        // By convention; a rule may say otherwise.
        caller.values[now.processor.stack()] = Some(cfa);
        let mut back = match now.processor.link() {
            Some(link) => Ok(now.values[link]),
            None => Err(Stop::Outermost),
        };
        for (register, rule) in &self.rules {
            let found = self.value(rule, cfa, now, stack);
            if *register == self.back {
                back = found;
            }
            if let Some(slot) = caller.values.get_mut(usize::from(*register)) {
                *slot = found.ok().flatten();
            }
        }
        let back = back?.ok_or(Stop::Outermost)?;
        caller.ip = now.processor.address(back);
        Ok(caller)
    }

    /// `None`: the rule says that there is none.
    fn value(
        &self,
        rule: &Rule,
        cfa: u64,
        now: &Registers,
        stack: &Stack<'_>,
    ) -> Result<Option<u64>, Stop> {
        let load = |address| stack.word(address).ok_or(Stop::OutsideCopy);
        Ok(Some(match rule {
            Rule::Lost => return Ok(None),
            Rule::At(offset) => load(cfa.wrapping_add_signed(*offset))?,
            Rule::Is(offset) => cfa.wrapping_add_signed(*offset),
            Rule::In(other) => now.get(*other).ok_or(Stop::Unknown)?,
            Rule::AtResult(text) => load(self.evaluate(text, Some(cfa), now, stack)?)?,
            Rule::Result(text) => self.evaluate(text, Some(cfa), now, stack)?,
        }))
    }

    /// The value of an expression, which begins with `first` on its stack.
    fn evaluate(
        &self,
        text: &Expression<Reader>,
        first: Option<u64>,
        now: &Registers,
        stack: &Stack<'_>,
    ) -> Result<u64, Stop> {
        let unknown = |_| Stop::Unknown;
        let mut evaluation = text.clone().evaluation(self.encoding);
        evaluation.set_max_iterations(MOST_OPERATIONS);
        if let Some(first) = first {
            evaluation.set_initial_value(first);
        }
        let mut state = evaluation.evaluate().map_err(unknown)?;
        for _ in 0..MOST_QUESTIONS {
            state = match state {
                EvaluationResult::Complete => {
                    let pieces = evaluation.as_result();
                    return match pieces.first().map(|piece| &piece.location) {
                        Some(gimli::Location::Address { address }) => Ok(*address),
                        _ => Err(Stop::Unknown),
                    };
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let value = stack.value(address, size).ok_or(Stop::OutsideCopy)?;
                    evaluation.resume_with_memory(Value::Generic(value)).map_err(unknown)?
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    // 16 is rip, which System V has among the registers of AMD64.
                    let value = match now.get(register.0) {
                        _ if register.0 == self.back && now.processor.link().is_none() => now.ip,
                        Some(value) => value,
                        None => return Err(Stop::Unknown),
                    };
                    evaluation.resume_with_register(Value::Generic(value)).map_err(unknown)?
                }
                _ => return Err(Stop::Unknown),
            };
        }
        Err(Stop::Unknown)
    }
}

/// Most registers that unwind tables name: those of AArch64, x0 to sp.
const MOST: usize = 32;

/// A processor's numbers of registers in DWARF, and what tables leave unsaid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Processor {
    /// System V ABI for AMD64, 3.6.2: the return address is register 16.
    X86,
    /// DWARF for the Arm 64-bit architecture: the return address is in x30.
    Arm,
}

/// `enum perf_event_x86_regs` (asm/perf_regs.h): perf's number of each of DWARF's registers, rax, rdx, rcx, rbx,
/// rsi, rdi, rbp, rsp, r8 to r15, and rip.
const X86: [u8; 17] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8];
/// perf's number of AArch64's program counter; the other registers have DWARF's numbers.
const ARM_PC: u8 = 32;
/// Bits of an address in user mode; those above may authenticate a pointer.
const ARM_ADDRESS: u64 = (1 << 48) - 1;

impl Processor {
    /// By the architecture of the recorded machine (`uname -m`).
    pub fn of(architecture: Option<&str>) -> Option<Self> {
        match architecture {
            Some("x86_64") => Some(Self::X86),
            Some("aarch64" | "arm64") => Some(Self::Arm),
            Some(_) => None,
            None if cfg!(target_arch = "aarch64") => Some(Self::Arm),
            None => Some(Self::X86),
        }
    }

    pub fn stack(self) -> usize {
        if self == Self::X86 { 7 } else { 31 }
    }

    pub fn frame(self) -> usize {
        if self == Self::X86 { 6 } else { 29 }
    }

    /// The register that a return address is in, where tables do not say where it is saved.
    pub fn link(self) -> Option<usize> {
        (self == Self::Arm).then_some(30)
    }

    /// A return address without what authenticates it.
    pub fn address(self, pointer: u64) -> u64 {
        if self == Self::X86 { pointer } else { pointer & ARM_ADDRESS }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registers {
    pub processor: Processor,
    /// Instruction pointer.
    pub ip: u64,
    /// By DWARF's numbers; `None`: not known.
    pub values: [Option<u64>; MOST],
}

impl Registers {
    /// Registers of a sample; `None` if it has none of 64 bits.
    pub fn of(sample: &Sample, processor: Processor) -> Option<Self> {
        let recorded = sample.registers.as_ref().filter(|recorded| recorded.wide)?;
        let value = |number: u8| {
            let found = recorded.values.binary_search_by_key(&number, |(number, _)| *number);
            found.ok().map(|at| recorded.values[at].1)
        };
        let mut values = [None; MOST];
        let ip = match processor {
            Processor::X86 => {
                for (dwarf, perf) in X86.iter().enumerate() {
                    values[dwarf] = value(*perf);
                }
                value(X86[16])?
            }
            Processor::Arm => {
                for (number, slot) in (0..).zip(values.iter_mut()) {
                    *slot = value(number);
                }
                value(ARM_PC)?
            }
        };
        values[processor.stack()]?;
        Some(Self { processor, ip, values })
    }

    /// The value of a register, by DWARF's number.
    pub fn get(&self, number: u16) -> Option<u64> {
        *self.values.get(usize::from(number))?
    }

    pub fn stack(&self) -> u64 {
        self.values[self.processor.stack()].unwrap_or(0)
    }
}

/// A copy of the top of the stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stack<'a> {
    /// Address of the first byte.
    pub start: u64,
    pub bytes: &'a [u8],
}

impl Stack<'_> {
    /// The word at an address; `None` outside of the copy.
    pub fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        Some(u64::from_le_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }

    /// A value of some bytes, at most 8; `None` outside of the copy.
    pub fn value(&self, address: u64, size: u8) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(usize::from(size))?)?;
        let mut word = [0; 8];
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }
}
