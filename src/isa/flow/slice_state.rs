//! The state of the backward slice: the jump's target and known bounds, in terms of the values at a
//! point before the jump, and how it changes when the slice steps back over an instruction.

use super::transfer::{WriteSummary, address, definitions, operand, store};
use super::value::{Value, mask};
use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind};

/// Most bounds at a time; the oldest is dropped.
const MAX_BOUNDS: usize = 8;
/// Largest bound that is accepted from an index's width or mask alone.
const MAX_WIDTH_BOUND: u64 = 1023;
const RSP: u8 = 4;
const RBP: u8 = 5;

/// The state at a point before the jump.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// The jump's target.
    pub target: Value,
    /// Largest value of the index in `target`, once found.
    pub max_index: Option<u64>,
    /// Whether that comes from a comparison, not only from the index's width or mask.
    pub compared: bool,
    /// Values with upper bounds, which comparisons on the path to the jump ensure.
    bounds: Vec<(Value, u64)>,
    /// The condition that the flags satisfy at this point.
    pub condition: Option<ConditionCode>,
    /// Registers that occur in these values, as a bit mask.
    registers: u16,
    /// Whether the values depend on memory other than the table itself.
    loads: bool,
}

impl State {
    /// The state at the indirect jump `jump`.
    pub fn new(jump: &Instruction) -> Self {
        let mut state = Self {
            target: operand(jump, 0),
            max_index: None,
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

    /// Whether the target no longer depends on anything before this point.
    pub fn is_closed(&self) -> bool {
        self.target.registers() == 0 && !has_open_load(&self.target)
    }

    /// Steps back over `instruction`.
    pub fn step(&mut self, instruction: &Instruction, effects: WriteSummary) {
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

    /// Replaces bounded values in the target by the index; drops bounds that can no longer match.
    fn match_bounds(&mut self, had_opaque: bool) {
        for (value, most) in self.bounds.iter().rev() {
            // Two unknown values are equal only if both come from this instruction.
            if self.max_index.is_some() || had_opaque && value.contains(is_opaque) {
                continue;
            }
            let indexed = self.target.indexed(value, *most);
            if indexed != self.target {
                self.target = indexed;
                self.max_index = Some(*most);
                self.compared = true;
            }
        }
        if self.max_index.is_some() {
            self.bounds.clear();
        }
        self.bounds.retain(|(value, _)| {
            !value.contains(is_opaque) && value.as_constant().is_none() && !value.is_too_large()
        });
        let surplus = self.bounds.len().saturating_sub(MAX_BOUNDS);
        self.bounds.drain(..surplus);
        if self.target.is_too_large() {
            self.target = Value::Opaque;
        }
    }

    /// Rewrites loaded values to those before a store. The table load is exempt: the table must turn
    /// out to be in read-only memory.
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

    /// Closes the state at a point before which nothing is known.
    pub fn close(&mut self) {
        self.bound_by_width();
        self.target = self
            .target
            .replaced(&mut |part| matches!(part, Value::Register(_)).then_some(Value::Opaque));
    }

    /// Bounds the index by the width or mask of a part of the target, unless a bound is known.
    pub fn bound_by_width(&mut self) {
        if self.max_index.is_some() {
            return;
        }
        let mut indexed_part: Option<(Value, u64)> = None;
        let indexed = self.target.replaced(&mut |part| {
            let varies = |p: &Value| matches!(p, Value::Opaque | Value::Register(_));
            let most =
                part.upper_bound().filter(|&m| m <= MAX_WIDTH_BOUND && part.contains(varies))?;
            let (known, _) = indexed_part.get_or_insert_with(|| (part.clone(), most));
            (known == part).then_some(Value::Index)
        });
        if let Some((_, most)) = indexed_part {
            self.target = indexed;
            self.max_index = Some(most);
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

/// The load of the table entry: the outermost load, unless it reads a stack slot.
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

/// Whether the target depends on memory that may be written. Loads at an index are tables, too,
/// and read later. Loads from unknown addresses stay unknown.
fn has_open_load(target: &Value) -> bool {
    let table = table(target);
    let is_known = |part: &Value| Some(part) == table || part.contains(is_index);
    target.contains(|part| is_load(part) && !is_known(part) && !part.contains(is_opaque))
}

/// The value of a load in terms of the memory before a store, if the store may change it.
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
        // A fixed address is not on the stack.
        None if to.as_constant().is_some() && from.contains(is_stack_pointer) => None,
        None if from.as_constant().is_some() && to.contains(is_stack_pointer) => None,
        _ => unknown,
    }
}

/// The bound that `instruction` implies where the condition `holds`: a value and its maximum.
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
    // A range from some lowest value to the type's maximum counts from the lowest.
    let (lowest, most) = match holds {
        ConditionCode::be | ConditionCode::e => (0, limit),
        ConditionCode::b => (0, limit.checked_sub(1)?),
        ConditionCode::ae => (limit, mask(bits) - limit),
        ConditionCode::a if limit < mask(bits) => (limit + 1, mask(bits) - limit - 1),
        _ => return None,
    };
    // The address must be one that the slice models.
    if instruction.op0_kind() == OpKind::Memory {
        address(instruction)?;
    }
    Some((operand(instruction, 0).minus(Value::constant(lowest)).low(bits), most))
}
