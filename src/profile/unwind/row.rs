//! A row of an unwind table: where the registers of the caller are, at one instruction.

use super::registers::{MOST, Registers, Stack};
use gimli::{
    CfaRule, Encoding, EndianArcSlice, EvaluationResult, Expression, RegisterRule, RunTimeEndian,
    UnwindExpression, UnwindSection, UnwindTableRow, Value,
};

pub(super) type Reader = EndianArcSlice<RunTimeEndian>;

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
