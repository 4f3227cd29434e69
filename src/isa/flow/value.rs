//! Symbolic values of the backward slice: an indirect jump's target in terms of the registers and memory at some point
//! before it.
//!
//! Values have a normal form, so that the value that a comparison bounds is recognised in the address
//! of a table entry.

/// Number of subexpressions after which a value is treated as unknown.
const MAX_PARTS: usize = 48;

/// A 64-bit value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Value {
    /// A sum of multiples of values and a constant. A single value with factor 1 is not a sum.
    Sum(Vec<(Value, u64)>, u64),
    /// A general-purpose register, by its encoding number.
    Register(u8),
    /// A zero-extended load of that many bytes from an address.
    Load(Box<Value>, u8),
    /// A value masked by a constant.
    And(Box<Value>, u64),
    /// A value sign-extended from that many bits, fewer than 64.
    Signed(Box<Value>, u8),
    /// A value whose lowest bits (that many, fewer than 64) are those of this one and whose other bits
    /// are unknown.
    Part(Box<Value>, u8),
    /// The index of a table entry.
    Index,
    /// An unknown value.
    Opaque,
}

pub(super) fn mask(bits: u8) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

impl Value {
    pub fn constant(value: u64) -> Self {
        Self::Sum(Vec::new(), value)
    }

    pub fn as_constant(&self) -> Option<u64> {
        match self {
            Self::Sum(terms, constant) if terms.is_empty() => Some(*constant),
            _ => None,
        }
    }

    fn into_terms(self) -> (Vec<(Self, u64)>, u64) {
        match self {
            Self::Sum(terms, constant) => (terms, constant),
            other => (vec![(other, 1)], 0),
        }
    }

    fn from_terms(terms: Vec<(Self, u64)>, constant: u64) -> Self {
        let mut merged = merged(terms, u64::wrapping_add);
        if constant == 0 && merged.len() == 1 && merged[0].1 == 1 {
            return merged.remove(0).0;
        }
        Self::Sum(merged, constant)
    }

    pub fn plus(self, other: Self) -> Self {
        let ((mut terms, constant), (more, further)) = (self.into_terms(), other.into_terms());
        terms.extend(more);
        Self::from_terms(terms, constant.wrapping_add(further))
    }

    pub fn times(self, factor: u64) -> Self {
        let (mut terms, constant) = self.into_terms();
        terms.iter_mut().for_each(|term| term.1 = term.1.wrapping_mul(factor));
        Self::from_terms(terms, constant.wrapping_mul(factor))
    }

    pub fn minus(self, other: Self) -> Self {
        self.plus(other.times(u64::MAX))
    }

    /// The lowest `bits`, zero-extended.
    pub fn low(self, bits: u8) -> Self {
        self.and(mask(bits))
    }

    pub fn and(self, bits: u64) -> Self {
        if bits == u64::MAX {
            return self;
        }
        if let Some(constant) = self.as_constant() {
            return Self::constant(constant & bits);
        }
        let width = 64 - u8::try_from(bits.leading_zeros()).unwrap_or(64);
        let value = self.stripped(width);
        if let Some(constant) = value.as_constant() {
            return Self::constant(constant & bits);
        }
        match value {
            Self::And(inner, other) => inner.and_exactly(other & bits),
            value => value.and_exactly(bits),
        }
    }

    fn and_exactly(self, bits: u64) -> Self {
        let is_low = bits & bits.wrapping_add(1) == 0;
        match self.upper_bound() {
            Some(most) if is_low && most <= bits => self,
            _ => Self::And(Box::new(self), bits),
        }
    }

    /// A value with the same lowest `bits`, without operations that affect only the others.
    fn stripped(self, bits: u8) -> Self {
        match self {
            Self::And(inner, m) if m & mask(bits) == mask(bits) => inner.stripped(bits),
            Self::Signed(inner, width) | Self::Part(inner, width) if width >= bits => {
                inner.stripped(bits)
            }
            Self::Sum(terms, constant) => {
                let stripped =
                    terms.into_iter().map(|(v, f)| v.stripped(bits).times(f & mask(bits)));
                let sum = stripped.fold(Self::constant(0), Self::plus);
                let (terms, more) = sum.into_terms();
                Self::from_terms(terms, constant.wrapping_add(more) & mask(bits))
            }
            other => other,
        }
    }

    /// The sign extension of the lowest `bits`.
    pub fn signed(self, bits: u8) -> Self {
        let value = self.stripped(bits);
        if let Some(constant) = value.as_constant() {
            return Self::constant(extend(constant, bits));
        }
        match value.upper_bound() {
            Some(most) if most <= mask(bits - 1) => value,
            _ => Self::Signed(Box::new(value), bits),
        }
    }

    /// An upper bound from its width or mask.
    pub fn upper_bound(&self) -> Option<u64> {
        match self {
            Self::Sum(..) => self.as_constant(),
            Self::Load(_, bytes) if *bytes < 8 => Some(mask(bytes * 8)),
            Self::And(inner, bits) => {
                Some(inner.upper_bound().map_or(*bits, |most| most.min(*bits)))
            }
            _ => None,
        }
    }

    /// Calls `visit` on it and all its subexpressions.
    pub fn each(&self, visit: &mut impl FnMut(&Self)) {
        visit(self);
        match self {
            Self::Sum(terms, _) => terms.iter().for_each(|(value, _)| value.each(visit)),
            Self::Load(v, _) | Self::And(v, _) | Self::Signed(v, _) | Self::Part(v, _) => {
                v.each(visit);
            }
            Self::Register(_) | Self::Index | Self::Opaque => {}
        }
    }

    pub fn contains(&self, wanted: impl Fn(&Self) -> bool) -> bool {
        let mut found = false;
        self.each(&mut |part| found |= wanted(part));
        found
    }

    /// The registers that occur in it, as a bit mask.
    pub fn registers(&self) -> u16 {
        let mut registers = 0;
        self.each(&mut |part| {
            if let Self::Register(number) = part {
                registers |= 1 << number;
            }
        });
        registers
    }

    pub fn is_too_large(&self) -> bool {
        let mut parts = 0;
        self.each(&mut |_| parts += 1);
        parts > MAX_PARTS
    }

    /// Replaces every subexpression for which `other` returns a value, outer ones first.
    pub fn replaced(&self, other: &mut impl FnMut(&Self) -> Option<Self>) -> Self {
        if let Some(value) = other(self) {
            return value;
        }
        match self {
            Self::Sum(terms, constant) => terms
                .iter()
                .map(|(value, factor)| value.replaced(other).times(*factor))
                .fold(Self::constant(*constant), Self::plus),
            Self::Load(address, bytes) => Self::Load(Box::new(address.replaced(other)), *bytes),
            Self::And(value, bits) => value.replaced(other).and(*bits),
            Self::Signed(value, bits) => value.replaced(other).signed(*bits),
            Self::Part(value, bits) => Self::Part(Box::new(value.replaced(other)), *bits),
            Self::Register(_) | Self::Index | Self::Opaque => self.clone(),
        }
    }

    /// Replaces `bounded`, which is at most `most`, by the index. Narrower or sign-extended
    /// occurrences are replaced, too, where they are equal for all values up to `most`.
    pub fn indexed(&self, bounded: &Self, most: u64) -> Self {
        let inner = match bounded {
            Self::And(inner, bits) if bits & bits.wrapping_add(1) == 0 => Some((&**inner, *bits)),
            Self::Load(_, bytes) if *bytes < 8 => Some((bounded, mask(bytes * 8))),
            _ => None,
        };
        self.replaced(&mut |part| {
            let same = match (part, inner) {
                _ if part == bounded => true,
                (Self::And(value, bits), Some((inner, all))) => {
                    let is_low = bits & bits.wrapping_add(1) == 0;
                    **value == *inner && is_low && *bits <= all && most <= *bits
                }
                (Self::Signed(value, bits), Some((inner, all))) => {
                    **value == *inner && mask(*bits) <= all && most <= mask(bits - 1)
                }
                _ => false,
            };
            same.then_some(Self::Index)
        })
    }

    /// Its value for an index; `None` if a part is unknown or cannot be read.
    pub fn evaluate(
        &self,
        index: u64,
        read: &mut impl FnMut(u64, u8) -> Option<u64>,
    ) -> Option<u64> {
        Some(match self {
            Self::Index => index,
            Self::Sum(terms, constant) => {
                let mut sum = *constant;
                for (value, factor) in terms {
                    sum = sum.wrapping_add(value.evaluate(index, read)?.wrapping_mul(*factor));
                }
                sum
            }
            Self::Load(address, bytes) => {
                let address = address.evaluate(index, read)?;
                read(address, *bytes)?
            }
            Self::And(value, bits) => value.evaluate(index, read)? & bits,
            Self::Signed(value, bits) => extend(value.evaluate(index, read)?, *bits),
            Self::Register(_) | Self::Opaque | Self::Part(..) => return None,
        })
    }
}

/// `value` sign-extended from its lowest `bits`, 1 to 64.
fn extend(value: u64, bits: u8) -> u64 {
    let unused = u32::from(64 - bits);
    ((value << unused).cast_signed() >> unused).cast_unsigned()
}

/// The terms of a sum, each value once and in order, without those of factor 0; `add` adds factors.
pub fn merged<V: Ord, N: Copy + Default + PartialEq>(
    mut terms: Vec<(V, N)>,
    add: impl Fn(N, N) -> N,
) -> Vec<(V, N)> {
    terms.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let mut merged: Vec<(V, N)> = Vec::with_capacity(terms.len());
    for (value, factor) in terms {
        match merged.last_mut() {
            Some(last) if last.0 == value => last.1 = add(last.1, factor),
            _ => merged.push((value, factor)),
        }
    }
    merged.retain(|term| term.1 != N::default());
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    const EAX: Value = Value::Register(0);

    #[test]
    fn thirty_two_bit_arithmetic_has_a_normal_form() {
        // `mov eax,eax; sub eax,5` and `lea eax,[rax-5]` are equal.
        let subtracted = EAX.low(32).minus(Value::constant(5)).low(32);
        assert_eq!(subtracted, EAX.plus(Value::constant(5u64.wrapping_neg())).low(32));
        // and eax,31; mov eax,eax; movzx eax,al
        assert_eq!(EAX.and(31).low(32).low(8), EAX.and(31));
        assert_eq!(EAX.and(31).signed(32), EAX.and(31));
        assert_eq!(EAX.minus(EAX), Value::constant(0));
        assert_eq!(EAX.low(64), EAX);
    }

    #[test]
    fn a_bound_applies_to_another_width_only_if_the_values_are_equal() {
        let bounded = EAX.low(32);
        assert_eq!(EAX.signed(32).indexed(&bounded, 18), Value::Index);
        assert_eq!(EAX.low(8).indexed(&bounded, 18), Value::Index);
        // 300 in 32 bits is 44 in 8; all 64 bits may exceed the lowest 32.
        assert_eq!(EAX.low(8).indexed(&bounded, 300), EAX.low(8));
        assert_eq!(EAX.indexed(&bounded, 18), EAX);
        assert_eq!(EAX.low(32).indexed(&EAX.low(8), 18), EAX.low(32));
    }
}
