//! Evaluation of vector register moves, as vector registers may hold pointers and counters.

use super::action::Action;
use super::machine::{Machine, Value};
use super::operation::{Operation, Slot};
use super::shadow::low_bytes;

/// Value and origins of an operand.
fn lanes(m: &Machine, slot: Slot) -> ([u64; 8], u64) {
    match slot {
        Slot::Vector(number) => {
            (m.vectors[usize::from(number & 31)], m.vector_origins[usize::from(number & 31)])
        }
        Slot::Memory => (m.lanes, m.lane_origins),
        other => {
            let Value { bits, origins } = m.read(other, 8);
            ([bits, 0, 0, 0, 0, 0, 0, 0], origins)
        }
    }
}

/// The lowest `bytes` of `lanes`, zero-extended.
fn cut(lanes: [u64; 8], bytes: u8) -> [u64; 8] {
    std::array::from_fn(|i| {
        let left = u32::from(bytes).saturating_sub(8 * i as u32);
        if left == 0 { 0 } else { lanes[i] & low_bytes(left) }
    })
}

/// Evaluates the actions on vectors.
pub fn evaluate(m: &mut Machine, o: &Operation) {
    let [first, second, third] = o.operands;
    let last = if third == Slot::None { second } else { third };
    match o.action {
        Action::VectorMove => {
            // The narrower operand determines the size.
            let bytes = if o.size == 0 { o.from } else { o.size.min(o.from.max(1)) };
            let (value, origins) = lanes(m, second);
            put(m, first, bytes, (cut(value, bytes), origins), false);
        }
        Action::VectorMerge => {
            let bytes = if o.scalar > 0 { o.scalar } else { o.from.min(o.size.max(1)) };
            let (value, origins) = lanes(m, second);
            put(m, first, bytes, (cut(value, bytes), origins), true);
        }
        Action::VectorZero => put(m, first, 64, ([0; 8], 0), false),
        Action::HighLoad => {
            let (loaded, from) = lanes(m, second);
            let (mut value, origins) = lanes(m, first);
            value[1] = loaded[0];
            put(m, first, 16, (cut(value, 16), origins | from), true);
        }
        Action::HighStore => {
            let (value, origins) = lanes(m, second);
            m.write(Slot::Memory, 8, Value { bits: value[1], origins });
        }
        Action::UnpackLow => {
            let ((low, a), (high, b)) = match third {
                Slot::None => (lanes(m, first), lanes(m, second)),
                _ => (lanes(m, second), lanes(m, third)),
            };
            let value = [low[0], high[0], 0, 0, 0, 0, 0, 0];
            put(m, first, 16, (value, a | b), third == Slot::None);
        }
        Action::Insert(lane) => {
            let legacy = matches!(third, Slot::Value(_));
            let (base, inserted) = if legacy { (first, second) } else { (second, last) };
            let ((mut value, a), (new, b)) = (lanes(m, base), lanes(m, inserted));
            value[usize::from(lane & 7)] = new[0];
            put(m, first, 16, (cut(value, 16), a | b), legacy);
        }
        Action::Extract(lane) => {
            let (value, origins) = lanes(m, second);
            m.write(first, 8, Value { bits: value[usize::from(lane & 7)], origins });
        }
        _ => m.make_unknown(o),
    }
}

/// Writes `bytes` of `value`; with `merge`, the rest of a register is preserved.
fn put(m: &mut Machine, slot: Slot, bytes: u8, value: ([u64; 8], u64), merge: bool) {
    let (lanes, origins) = value;
    match slot {
        Slot::Vector(number) => {
            let number = usize::from(number & 31);
            if merge {
                let old = m.vectors[number];
                let low = cut(old, bytes);
                m.vectors[number] = std::array::from_fn(|i| old[i] ^ low[i] | lanes[i]);
                m.vector_origins[number] |= origins;
                if bytes >= 16 {
                    m.vector_origins[number] = origins;
                }
            } else {
                (m.vectors[number], m.vector_origins[number]) = value;
            }
        }
        Slot::Memory => (m.lanes, m.lane_origins) = value,
        register => m.write(register, bytes.clamp(4, 8), Value { bits: lanes[0], origins }),
    }
}
