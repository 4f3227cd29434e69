//! Evaluates an action on the simulator's state.

use super::action::Action;
use super::arithmetic::{Flags, compute, deposit, double_shift, extend, gather, product, quotient};
use super::machine::{Machine, OPAQUE, Value};
use super::operation::{Operation, Slot};
use super::shadow::low_bytes;

const RAX: usize = 0;
const RCX: usize = 1;
const RDX: usize = 2;
const RSP: usize = 4;
const RBP: usize = 5;
const RSI: usize = 6;
const RDI: usize = 7;

fn register(number: usize) -> Slot {
    Slot::Register(number as u8, 0)
}

/// Evaluates an operation: writes registers and flags, and leaves the value to be stored in
/// [`Machine::lanes`].
pub fn evaluate(m: &mut Machine, o: &Operation) {
    let [first, second, third] = o.operands;
    match o.action {
        Action::Nothing => {}
        Action::Move => {
            let value = m.read(second, o.from);
            m.write(first, o.size, value);
        }
        Action::MoveSigned => {
            let value = m.read(second, o.from);
            m.write(first, o.size, Value { bits: extend(value.bits, o.from), ..value });
        }
        Action::Lea => match &o.address {
            Some(address) => {
                let value = m.compute(address);
                m.write(first, o.size, value);
            }
            None => m.make_unknown(o),
        },
        Action::Cmov(condition) => {
            let chosen = if m.flags.hold(condition) { second } else { first };
            let both = m.read(first, o.size).origins | m.read(second, o.size).origins;
            let value = Value { origins: both, ..m.read(chosen, o.size) };
            m.write(first, o.size, value);
        }
        Action::Set(condition) => {
            let value = Value { bits: m.flags.hold(condition).into(), origins: m.flag_origins };
            m.write(first, 1, value);
        }
        Action::Not | Action::Bswap => {
            let source =
                if o.action == Action::Bswap && second != Slot::None { second } else { first };
            let value = m.read(source, o.size);
            let bits = match o.action {
                Action::Not => !value.bits,
                _ => value.bits.swap_bytes() >> (64 - u32::from(o.size.clamp(1, 8)) * 8),
            };
            m.write(first, o.size, Value { bits, ..value });
        }
        Action::Exchange | Action::ExchangeAdd => exchange(m, o),
        Action::SetCarry(carry) => {
            m.flags.carry = carry.unwrap_or(!m.flags.carry);
        }
        Action::Push
        | Action::Pop
        | Action::Leave
        | Action::Call
        | Action::CallOver
        | Action::Return => stack(m, o),
        Action::Movs | Action::Lods | Action::Stos | Action::Compare { .. } => string(m, o),
        Action::VectorMove
        | Action::VectorMerge
        | Action::VectorZero
        | Action::HighLoad
        | Action::HighStore
        | Action::UnpackLow
        | Action::Insert(_)
        | Action::Extract(_) => super::machine::evaluate(m, o),
        Action::Imul
        | Action::MulWide
        | Action::ImulWide
        | Action::Mulx
        | Action::Div
        | Action::Idiv => multiply(m, o),
        Action::ExtendAccumulator => {
            let value = m.read(register(RAX), o.size / 2);
            let bits = extend(value.bits, o.size / 2);
            m.write(register(RAX), o.size, Value { bits, ..value });
        }
        Action::ExtendIntoData => {
            let value = m.read(register(RAX), o.size);
            let bits = (extend(value.bits, o.size) as i64 >> 63) as u64;
            m.write(register(RDX), o.size, Value { bits, ..value });
        }
        Action::Shlx | Action::Shrx | Action::Sarx | Action::Rorx => {
            let action = match o.action {
                Action::Shlx => Action::Shl,
                Action::Shrx => Action::Shr,
                Action::Sarx => Action::Sar,
                _ => Action::Ror,
            };
            let (a, b) = (m.read(second, o.size), m.read(third, o.size));
            if let Some((bits, _)) = compute(action, a.bits, b.bits, m.flags, o.size) {
                m.write(first, o.size, Value { bits, origins: a.origins | b.origins });
            }
        }
        Action::Shld | Action::Shrd => {
            let (a, b, c) = (m.read(first, o.size), m.read(second, o.size), m.read(third, 1));
            let left = o.action == Action::Shld;
            let (bits, flags) = double_shift(left, a.bits, b.bits, c.bits, m.flags, o.size);
            set_flags(m, flags, a.origins | b.origins | c.origins);
            m.write(first, o.size, Value { bits, origins: a.origins | b.origins | c.origins });
        }
        Action::Pdep | Action::Pext => {
            let (a, b) = (m.read(second, o.size), m.read(third, o.size));
            let bits = match o.action {
                Action::Pdep => deposit(a.bits, b.bits),
                _ => gather(a.bits, b.bits),
            };
            m.write(first, o.size, Value { bits, origins: a.origins | b.origins });
        }
        Action::CountDown => m.values[RCX] = m.values[RCX].wrapping_sub(1),
        // Their elements are evaluated in the step.
        Action::RepeatMovs | Action::RepeatStos => {}
        Action::Unknown => {
            m.make_unknown(o);
            m.values[RSP] = m.values[RSP].wrapping_add(o.stack as u64);
        }
        _ => arithmetic(m, o),
    }
}

fn set_flags(m: &mut Machine, flags: Flags, origins: u64) {
    (m.flags, m.flag_origins) = (flags, origins);
}

/// Result and flags of one or two operands.
fn arithmetic(m: &mut Machine, o: &Operation) {
    let [first, second, third] = o.operands;
    let shift =
        matches!(o.action, Action::Shl | Action::Shr | Action::Sar | Action::Rol | Action::Ror);
    // Whether the destination is not a source.
    let separate = third != Slot::None
        || matches!(
            o.action,
            Action::Popcnt
                | Action::Tzcnt
                | Action::Lzcnt
                | Action::Bsf
                | Action::Bsr
                | Action::Blsr
                | Action::Blsi
                | Action::Blsmsk
        );
    let (a, b) = if separate { (second, third) } else { (first, second) };
    let (left, right) = (m.read(a, o.size), m.read(b, if shift { 1 } else { o.size }));
    let Some((bits, flags)) = compute(o.action, left.bits, right.bits, m.flags, o.size) else {
        return m.make_unknown(o);
    };
    let same = a == b && a != Slot::None;
    let mut origins = match o.action {
        Action::Xor | Action::Sub if same => 0,
        Action::Sbb if same => m.flag_origins,
        _ => left.origins | right.origins,
    };
    if matches!(o.action, Action::Adc | Action::Sbb) {
        origins |= m.flag_origins;
    }
    // Bit tests change only the carry flag.
    let one_bit = matches!(
        o.action,
        Action::BitTest | Action::BitSet | Action::BitReset | Action::BitComplement
    );
    set_flags(m, flags, if one_bit { origins | m.flag_origins } else { origins });
    if !matches!(o.action, Action::Cmp | Action::Test | Action::BitTest) {
        m.write(first, o.size, Value { bits, origins });
    }
}

fn exchange(m: &mut Machine, o: &Operation) {
    let [first, second, _] = o.operands;
    let (a, b) = (m.read(first, o.size), m.read(second, o.size));
    // The first operand may be memory and is written last, because its lanes hold the loaded value.
    let into_first = match compute(o.action, a.bits, b.bits, m.flags, o.size) {
        Some((bits, flags)) => {
            set_flags(m, flags, a.origins | b.origins);
            Value { bits, origins: a.origins | b.origins }
        }
        None => b,
    };
    m.write(second, o.size, a);
    m.write(first, o.size, into_first);
}

fn multiply(m: &mut Machine, o: &Operation) {
    let [first, second, third] = o.operands;
    let both = |a: Value, b: Value| a.origins | b.origins;
    match o.action {
        Action::Imul => {
            let (a, b) = if third == Slot::None { (first, second) } else { (second, third) };
            let (a, b) = (m.read(a, o.size), m.read(b, o.size));
            let (bits, high) = product(a.bits, b.bits, true, o.size);
            let cut = high != (extend(bits, o.size) as i64 >> 63) as u64 & low_bytes(o.size.into());
            let flags = Flags { carry: cut, overflow: cut, result: extend(bits, o.size) };
            set_flags(m, flags, both(a, b));
            m.write(first, o.size, Value { bits, origins: both(a, b) });
        }
        Action::Mulx => {
            let (a, b) = (m.read(register(RDX), o.size), m.read(third, o.size));
            let (low, high) = product(a.bits, b.bits, false, o.size);
            m.write(second, o.size, Value { bits: low, origins: both(a, b) });
            m.write(first, o.size, Value { bits: high, origins: both(a, b) });
        }
        Action::MulWide | Action::ImulWide if o.size > 1 => {
            let (a, b) = (m.read(register(RAX), o.size), m.read(first, o.size));
            let signed = o.action == Action::ImulWide;
            let (low, high) = product(a.bits, b.bits, signed, o.size);
            m.make_unknown(o);
            m.write(register(RAX), o.size, Value { bits: low, origins: both(a, b) });
            m.write(register(RDX), o.size, Value { bits: high, origins: both(a, b) });
        }
        Action::Div | Action::Idiv if o.size > 1 => {
            let (high, low) = (m.read(register(RDX), o.size), m.read(register(RAX), o.size));
            let by = m.read(first, o.size);
            let signed = o.action == Action::Idiv;
            let found = quotient(high.bits, low.bits, by.bits, signed, o.size);
            m.make_unknown(o);
            let origins = both(low, by) | high.origins;
            if let Some((quotient, remainder)) = found {
                m.write(register(RAX), o.size, Value { bits: quotient, origins });
                m.write(register(RDX), o.size, Value { bits: remainder, origins });
            }
        }
        _ => m.make_unknown(o),
    }
}

fn stack(m: &mut Machine, o: &Operation) {
    let first = o.operands[0];
    let size = if o.stack.unsigned_abs() == 2 { 2 } else { 8 };
    let moved = m.values[RSP].wrapping_add(o.stack as u64);
    let loaded = Value { bits: m.lanes[0], origins: m.lane_origins };
    match o.action {
        Action::Push => {
            let value = m.read(first, size);
            m.write(Slot::Memory, size, value);
            m.values[RSP] = moved;
        }
        Action::Call => {
            m.write(Slot::Memory, 8, Value::known(o.from.into()));
            m.values[RSP] = moved;
        }
        Action::CallOver => m.make_unknown(o),
        Action::Pop => {
            m.values[RSP] = moved;
            m.write(first, size, loaded);
        }
        Action::Leave => {
            m.values[RSP] = m.values[RBP].wrapping_add(8);
            m.origins[RSP] = m.origins[RBP];
            m.write(register(RBP), 8, loaded);
        }
        _ => m.values[RSP] = moved,
    }
}

/// One element of a string instruction; the direction flag is clear, as the ABI requires.
fn string(m: &mut Machine, o: &Operation) {
    let bytes = u64::from(o.size.max(1));
    let mut advance = |number: usize| m.values[number] = m.values[number].wrapping_add(bytes);
    match o.action {
        // The lanes already hold the loaded value, which is stored.
        Action::Movs => {
            advance(RSI);
            advance(RDI);
        }
        Action::Lods => {
            advance(RSI);
            let value = Value { bits: m.lanes[0], origins: m.lane_origins };
            m.write(register(RAX), o.size, value);
        }
        Action::Stos => {
            advance(RDI);
            let value = m.read(register(RAX), o.size);
            m.write(Slot::Memory, o.size, value);
        }
        Action::Compare { scan } => {
            advance(RDI);
            if !scan {
                advance(RSI);
            }
            let bits = m.random.u64(..);
            let flags = Flags { carry: bits & 1 != 0, overflow: bits & 2 != 0, result: bits };
            set_flags(m, flags, OPAQUE);
        }
        _ => {}
    }
}
