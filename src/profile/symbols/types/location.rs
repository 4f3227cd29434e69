//! Where a variable is at an instruction.

use crate::symbols::reader::Reader;
use gimli::{AttributeValue, Expression, Operation, UnitRef};

/// Where a variable is. Registers have DWARF's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The register's value is that of the variable + `offset`.
    Value {
        /// The register.
        register: u16,
        /// Offset to subtract from its value.
        offset: i64,
    },
    /// It is in memory at the register's value + `offset`.
    Memory {
        /// The register.
        register: u16,
        /// Offset of its first byte.
        offset: i64,
    },
}

/// Base of frame offsets.
pub(super) type Base = Option<(u16, i64)>;

/// Where `DW_AT_location` puts a variable at `address`.
pub(super) fn place(
    unit: UnitRef<'_, Reader>,
    location: AttributeValue<Reader>,
    address: u64,
    base: Base,
) -> Option<Place> {
    if let AttributeValue::Exprloc(expression) = location {
        return of(unit, expression, base);
    }
    let mut all = unit.attr_locations(location).ok()??;
    while let Ok(Some(one)) = all.next() {
        if (one.range.begin..one.range.end).contains(&address) {
            return of(unit, one.data, base);
        }
    }
    None
}

/// Expressions that are a register, a constant distance from one, or such a place in memory.
fn of(unit: UnitRef<'_, Reader>, expression: Expression<Reader>, base: Base) -> Option<Place> {
    let mut operations = expression.operations(unit.encoding());
    let first = operations.next().ok()??;
    let second = operations.next().ok()?;
    if second.is_some() && operations.next().ok()?.is_some() {
        return None;
    }
    match (first, second) {
        (Operation::Register { register }, None) => {
            Some(Place::Value { register: register.0, offset: 0 })
        }
        (Operation::RegisterOffset { register, offset, .. }, None) => {
            Some(Place::Memory { register: register.0, offset })
        }
        // The variable is the register + offset: the register is the variable - offset.
        (Operation::RegisterOffset { register, offset, .. }, Some(Operation::StackValue)) => {
            Some(Place::Value { register: register.0, offset: offset.checked_neg()? })
        }
        (Operation::FrameOffset { offset }, None) => {
            let (register, distance) = base?;
            Some(Place::Memory { register, offset: distance.checked_add(offset)? })
        }
        _ => None,
    }
}

/// Base of a function's frame offsets; `cfa` is the canonical frame address.
pub(super) fn frame_base(
    unit: UnitRef<'_, Reader>,
    attribute: Option<AttributeValue<Reader>>,
    cfa: Base,
) -> Base {
    let AttributeValue::Exprloc(expression) = attribute? else { return None };
    let mut operations = expression.operations(unit.encoding());
    match operations.next().ok()?? {
        Operation::CallFrameCFA => cfa,
        Operation::Register { register } => Some((register.0, 0)),
        Operation::RegisterOffset { register, offset, .. } => Some((register.0, offset)),
        _ => None,
    }
}
