//! One step of the backward slice: the jump's target and the bounds known so far, in terms of the
//! values before an instruction instead of those behind it.

use super::effects::{Effects, address, definitions, operand, store};
use super::value::{Value, mask};
use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind};

/// Bounds kept at a time; the oldest goes.
const MOST_BOUNDS: usize = 8;
/// An index that its form alone bounds (a byte, a mask) may be no larger than this.
const LARGEST_FORM: u64 = 1023;
const RSP: u8 = 4;
const RBP: u8 = 5;

/// What is known at a point before the jump.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Where the jump goes.
    pub target: Value,
    /// The most that the index in `target` may be, once found.
    pub most: Option<u64>,
    /// Whether a comparison says so, not only the form of the index.
    pub compared: bool,
    /// Values that are no larger than a number, as comparisons on the way to the jump ensure.
    bounds: Vec<(Value, u64)>,
    /// What holds of the flags at this point.
    pub condition: Option<ConditionCode>,
    /// Registers in any of these values.
    registers: u16,
    /// Whether memory matters beside the table itself.
    loads: bool,
}

impl State {
    /// At the indirect jump `jump`.
    pub fn new(jump: &Instruction) -> Self {
        let mut state = Self {
            target: operand(jump, 0),
            most: None,
            compared: false,
            bounds: Vec::new(),
            condition: None,
            registers: 0,
            loads: false,
        };
        state.note();
        state
    }

    fn note(&mut self) {
        let bounds = self.bounds.iter();
        self.registers =
            bounds.fold(self.target.registers(), |all, (value, _)| all | value.registers());
        self.loads =
            self.bounds.iter().any(|b| b.0.contains(is_load)) || has_open_load(&self.target);
    }

    /// Whether nothing before this point matters any more.
    pub fn is_closed(&self) -> bool {
        self.target.registers() == 0 && !has_open_load(&self.target)
    }

    /// Steps back over `instruction`.
    pub fn step(&mut self, instruction: &Instruction, effects: Effects) {
        let sets = self.registers & effects.written != 0;
        let stores = self.loads && effects.stores;
        let condition = if effects.flags { self.condition.take() } else { None };
        if !sets && !stores && condition.is_none() {
            return;
        }
        let had_opaque = self.target.contains(is_opaque);
        if stores {
            self.step_store(instruction);
        }
        if sets {
            let definitions = definitions(instruction, effects);
            self.substitute(&mut |part| match part {
                Value::Register(number) => {
                    definitions.iter().find(|d| d.0 == *number).map(|d| d.1.clone())
                }
                _ => None,
            });
        }
        self.bounds.extend(condition.and_then(|holds| bound(instruction, holds)));
        self.match_bounds(had_opaque);
        self.note();
    }

    fn substitute(&mut self, with: &mut impl FnMut(&Value) -> Option<Value>) {
        self.target = self.target.replaced(with);
        for (value, _) in &mut self.bounds {
            *value = value.replaced(with);
        }
    }

    /// Recognises bounded values in the target; forgets bounds that can never be recognised.
    fn match_bounds(&mut self, had_opaque: bool) {
        for (value, most) in self.bounds.iter().rev() {
            // Two unknowns are the same only if both came from this instruction.
            if self.most.is_some() || had_opaque && value.contains(is_opaque) {
                continue;
            }
            let indexed = self.target.indexed(value, *most);
            if indexed != self.target {
                self.target = indexed;
                self.most = Some(*most);
                self.compared = true;
            }
        }
        if self.most.is_some() {
            self.bounds.clear();
        }
        self.bounds.retain(|(value, _)| {
            !value.contains(is_opaque) && value.as_constant().is_none() && !value.is_too_large()
        });
        let surplus = self.bounds.len().saturating_sub(MOST_BOUNDS);
        self.bounds.drain(..surplus);
        if self.target.is_too_large() {
            self.target = Value::Opaque;
        }
    }

    /// Memory values before a store. The table itself is left alone: it must turn out to lie where
    /// nothing can be written.
    fn step_store(&mut self, instruction: &Instruction) {
        let stored = store(instruction);
        let before = |part: &Value| match part {
            Value::Load(from, bytes) => loaded(from, *bytes, stored.as_ref()),
            _ => None,
        };
        let table = table(&self.target).cloned();
        self.target = self.target.replaced(&mut |part| match (part, &table) {
            (Value::Load(from, bytes), Some(table)) if part == table => {
                Some(Value::Load(Box::new(from.replaced(&mut |inner| before(inner))), *bytes))
            }
            _ => before(part),
        });
        for (value, _) in &mut self.bounds {
            *value = value.replaced(&mut |part| before(part));
        }
    }

    /// At a point before which nothing is known: only the form of the index bounds it.
    pub fn give_up(&mut self) {
        self.bound_by_form();
        self.target = self
            .target
            .replaced(&mut |part| matches!(part, Value::Register(_)).then_some(Value::Opaque));
    }

    /// Takes what the form of a part (a byte, a mask) says for the bound of the index, unless one
    /// is known.
    pub fn bound_by_form(&mut self) {
        if self.most.is_some() {
            return;
        }
        let mut form: Option<(Value, u64)> = None;
        let indexed = self.target.replaced(&mut |part| {
            let varies = |p: &Value| matches!(p, Value::Opaque | Value::Register(_));
            let most = part.most().filter(|&m| m <= LARGEST_FORM && part.contains(varies))?;
            let (known, _) = form.get_or_insert_with(|| (part.clone(), most));
            (known == part).then_some(Value::Index)
        });
        if let Some((_, most)) = form {
            self.target = indexed;
            self.most = Some(most);
            self.bounds.clear();
            self.note();
        }
    }
}

fn is_load(value: &Value) -> bool {
    matches!(value, Value::Load(..))
}

pub(super) fn is_opaque(value: &Value) -> bool {
    *value == Value::Opaque
}

fn is_index(value: &Value) -> bool {
    *value == Value::Index
}

fn is_stack_pointer(value: &Value) -> bool {
    *value == Value::Register(RSP)
}

/// The load of the table's entry: the outermost one, unless it is of a slot of the stack.
fn table(target: &Value) -> Option<&Value> {
    match target {
        Value::Load(from, _) => {
            let registers = from.registers();
            let is_slot = registers != 0 && registers & !(1 << RSP | 1 << RBP) == 0;
            let is_more = from.contains(|p| is_load(p) || is_opaque(p) || is_index(p));
            (!is_slot || is_more).then_some(target)
        }
        Value::Sum(terms, _) => terms.iter().find_map(|(value, _)| table(value)),
        Value::And(v, _) | Value::Signed(v, _) | Value::Part(v, _) => table(v),
        _ => None,
    }
}

/// Whether the target depends on memory that may be written. Loads at the index are tables too:
/// they are read in the end. Those at an unknown place stay unknown.
fn has_open_load(target: &Value) -> bool {
    let table = table(target);
    let is_known = |part: &Value| Some(part) == table || part.contains(is_index);
    target.contains(|part| is_load(part) && !is_known(part) && !part.contains(is_opaque))
}

/// What a load gave before a store, if the store changes what is known of it.
fn loaded(from: &Value, bytes: u8, stored: Option<&(Value, u8, Value)>) -> Option<Value> {
    if from.contains(is_index) {
        return None;
    }
    let unknown = Some(Value::Opaque.low(bytes * 8));
    let Some((to, length, what)) = stored else { return unknown };
    let distance = to.clone().minus(from.clone());
    match distance.as_constant().map(u64::cast_signed) {
        Some(0) if *length == bytes => Some(what.clone().low(bytes * 8)),
        Some(d) if d >= i64::from(bytes) || d <= -i64::from(*length) => None,
        // A fixed place is not on the stack.
        None if to.as_constant().is_some() && from.contains(is_stack_pointer) => None,
        None if from.as_constant().is_some() && to.contains(is_stack_pointer) => None,
        _ => unknown,
    }
}

/// What `instruction` ensures where `holds` is true of its flags: a value and the most it can be.
fn bound(instruction: &Instruction, holds: ConditionCode) -> Option<(Value, u64)> {
    if !matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Sub) {
        return None;
    }
    let bits = match instruction.op0_kind() {
        OpKind::Register => instruction.op0_register().size(),
        OpKind::Memory => instruction.memory_size().size(),
        _ => return None,
    };
    let bits = u8::try_from(bits * 8).ok()?;
    let limit = operand(instruction, 1).as_constant()? & mask(bits);
    // From a lowest value up to the largest of all is a range too, counted from the lowest.
    let (lowest, most) = match holds {
        ConditionCode::be | ConditionCode::e => (0, limit),
        ConditionCode::b => (0, limit.checked_sub(1)?),
        ConditionCode::ae => (limit, mask(bits) - limit),
        ConditionCode::a if limit < mask(bits) => (limit + 1, mask(bits) - limit - 1),
        _ => return None,
    };
    // The address must be one that is understood.
    if instruction.op0_kind() == OpKind::Memory {
        address(instruction)?;
    }
    Some((operand(instruction, 0).minus(Value::constant(lowest)).low(bits), most))
}
