//! Integer arithmetic with flags as defined in Intel SDM vol. 2. Undefined flags and results have
//! arbitrary values, on which compiled code does not depend.

use super::action::Action;
use super::shadow::low_bytes;
use iced_x86::ConditionCode;

/// The arithmetic flags; SF, ZF and PF are represented by the result that they describe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// CF.
    pub carry: bool,
    /// OF.
    pub overflow: bool,
    /// The sign-extended result that defines SF, ZF and PF.
    pub result: u64,
}

impl Flags {
    /// Whether `condition` holds.
    pub fn hold(self, condition: ConditionCode) -> bool {
        use ConditionCode as C;
        let (zero, sign) = (self.result == 0, (self.result as i64) < 0);
        let parity = (self.result as u8).count_ones().is_multiple_of(2);
        match condition {
            C::None => true,
            C::o => self.overflow,
            C::no => !self.overflow,
            C::b => self.carry,
            C::ae => !self.carry,
            C::e => zero,
            C::ne => !zero,
            C::be => self.carry || zero,
            C::a => !self.carry && !zero,
            C::s => sign,
            C::ns => !sign,
            C::p => parity,
            C::np => !parity,
            C::l => sign != self.overflow,
            C::ge => sign == self.overflow,
            C::le => zero || sign != self.overflow,
            C::g => !zero && sign == self.overflow,
        }
    }
}

/// `value` sign-extended from `size` bytes.
pub fn extend(value: u64, size: u8) -> u64 {
    match size {
        1 => value as i8 as u64,
        2 => value as i16 as u64,
        4 => value as i32 as u64,
        _ => value,
    }
}

fn sum(a: u64, b: u64, carry: bool, size: u8) -> (u64, Flags) {
    let mask = low_bytes(size.into());
    let wide = u128::from(a & mask) + u128::from(b & mask) + u128::from(carry);
    let result = wide as u64 & mask;
    let signs = (a ^ result) & (b ^ result);
    let flags = Flags {
        carry: wide > u128::from(mask),
        overflow: extend(signs, size) >> 63 != 0,
        result: extend(result, size),
    };
    (result, flags)
}

fn difference(a: u64, b: u64, borrow: bool, size: u8) -> (u64, Flags) {
    let mask = low_bytes(size.into());
    let (a, b) = (a & mask, b & mask);
    let result = a.wrapping_sub(b).wrapping_sub(borrow.into()) & mask;
    let signs = (a ^ b) & (a ^ result);
    let flags = Flags {
        carry: u128::from(a) < u128::from(b) + u128::from(borrow),
        overflow: extend(signs, size) >> 63 != 0,
        result: extend(result, size),
    };
    (result, flags)
}

fn logic(result: u64, size: u8) -> (u64, Flags) {
    let result = result & low_bytes(size.into());
    (result, Flags { carry: false, overflow: false, result: extend(result, size) })
}

/// Result and flags of an action with one or two sources; `None` for other actions.
pub fn compute(action: Action, a: u64, b: u64, old: Flags, size: u8) -> Option<(u64, Flags)> {
    let keep_carry = |(result, flags): (u64, Flags)| (result, Flags { carry: old.carry, ..flags });
    Some(match action {
        Action::Add | Action::ExchangeAdd => sum(a, b, false, size),
        Action::Adc => sum(a, b, old.carry, size),
        Action::Sub | Action::Cmp => difference(a, b, false, size),
        Action::Sbb => difference(a, b, old.carry, size),
        Action::Inc => keep_carry(sum(a, 1, false, size)),
        Action::Dec => keep_carry(difference(a, 1, false, size)),
        Action::Neg => difference(0, a, false, size),
        Action::And | Action::Test => logic(a & b, size),
        Action::Andn => logic(!a & b, size),
        Action::Or => logic(a | b, size),
        Action::Xor => logic(a ^ b, size),
        Action::Shl | Action::Shr | Action::Sar | Action::Rol | Action::Ror => {
            return Some(shift(action, a, b, old, size));
        }
        Action::Blsr => logic(a & a.wrapping_sub(1), size),
        Action::Blsi => logic(a & a.wrapping_neg(), size),
        Action::Blsmsk => logic(a ^ a.wrapping_sub(1), size),
        Action::Bzhi => {
            let (count, bits) = (b & 0xff, u64::from(size) * 8);
            logic(if count < bits { a & !(u64::MAX << count) } else { a }, size)
        }
        Action::Bextr => {
            let (start, length) = (b & 0xff, b >> 8 & 0xff);
            let shifted = if start < 64 { a >> start } else { 0 };
            logic(if length < 64 { shifted & !(u64::MAX << length) } else { shifted }, size)
        }
        Action::Popcnt => logic(u64::from(a.count_ones()), size),
        Action::BitTest | Action::BitSet | Action::BitReset | Action::BitComplement => {
            let bit = 1 << (b & (u64::from(size) * 8).saturating_sub(1));
            let result = match action {
                Action::BitSet => a | bit,
                Action::BitReset => a & !bit,
                Action::BitComplement => a ^ bit,
                _ => a,
            };
            (result, Flags { carry: a & bit != 0, ..old })
        }
        Action::Tzcnt | Action::Lzcnt | Action::Bsf | Action::Bsr => count(action, a, size),
        _ => return None,
    })
}

fn count(action: Action, a: u64, size: u8) -> (u64, Flags) {
    let bits = u32::from(size) * 8;
    let trailing = a.trailing_zeros().min(bits);
    let leading = (a << (64 - bits.min(64))).leading_zeros().min(bits);
    let result = match action {
        Action::Lzcnt => leading,
        Action::Bsr => bits.wrapping_sub(1).wrapping_sub(leading),
        _ => trailing,
    };
    let (result, flags) = logic(result.into(), size);
    // bsf and bsr set ZF if the source is 0; tzcnt and lzcnt set CF.
    let searched = matches!(action, Action::Bsf | Action::Bsr);
    let shown = if searched { a } else { flags.result };
    (result, Flags { carry: a == 0, overflow: false, result: shown })
}

fn shift(action: Action, a: u64, b: u64, old: Flags, size: u8) -> (u64, Flags) {
    let bits = u32::from(size) * 8;
    let count = b as u32 & if size == 8 { 63 } else { 31 };
    let mask = low_bytes(size.into());
    if count == 0 || bits == 0 {
        return (a & mask, old);
    }
    let signed = extend(a, size) as i64;
    let bit = |value: u64, n: u32| n < 64 && value >> n & 1 != 0;
    match action {
        Action::Shl => {
            let result = if count < 64 { a << count & mask } else { 0 };
            let carry = count <= bits && bit(a, bits - count);
            let overflow = bit(result, bits - 1) != carry;
            (result, Flags { carry, overflow, result: extend(result, size) })
        }
        Action::Shr => {
            let result = (a & mask) >> count;
            let overflow = bit(a, bits - 1);
            (result, Flags { carry: bit(a, count - 1), overflow, result: extend(result, size) })
        }
        Action::Sar => {
            let result = (signed >> count) as u64 & mask;
            let carry = bit((signed >> (count - 1)) as u64, 0);
            (result, Flags { carry, overflow: false, result: extend(result, size) })
        }
        _ => {
            let left =
                if action == Action::Rol { count % bits } else { (bits - count % bits) % bits };
            let value = a & mask;
            let result =
                if left == 0 { value } else { (value << left | value >> (bits - left)) & mask };
            let carry = bit(result, if action == Action::Rol { 0 } else { bits - 1 });
            (result, Flags { carry, ..old })
        }
    }
}

/// shld (`left`) or shrd: `a` shifted, filled with bits of `b`.
pub fn double_shift(left: bool, a: u64, b: u64, count: u64, old: Flags, size: u8) -> (u64, Flags) {
    let bits = u32::from(size) * 8;
    let count = count as u32 & if size == 8 { 63 } else { 31 };
    let mask = low_bytes(size.into());
    let (a, b) = (a & mask, b & mask);
    if count == 0 || count >= bits {
        return (a, old);
    }
    let result = match left {
        true => (a << count | b >> (bits - count)) & mask,
        false => (a >> count | b << (bits - count)) & mask,
    };
    let carry = a >> if left { bits - count } else { count - 1 } & 1 != 0;
    (result, Flags { carry, overflow: false, result: extend(result, size) })
}

/// Low and high half of a product.
pub fn product(a: u64, b: u64, signed: bool, size: u8) -> (u64, u64) {
    let bits = u32::from(size) * 8;
    let mask = low_bytes(size.into());
    let wide = match signed {
        true => (i128::from(extend(a, size) as i64) * i128::from(extend(b, size) as i64)) as u128,
        false => u128::from(a & mask) * u128::from(b & mask),
    };
    (wide as u64 & mask, (wide >> bits) as u64 & mask)
}

/// Quotient and remainder; `None` if the processor would raise an exception.
pub fn quotient(high: u64, low: u64, by: u64, signed: bool, size: u8) -> Option<(u64, u64)> {
    let bits = u32::from(size) * 8;
    let mask = low_bytes(size.into());
    let dividend = u128::from(high & mask) << bits | u128::from(low & mask);
    if signed {
        let unused = 128 - 2 * bits;
        let dividend = (dividend << unused) as i128 >> unused;
        let by = i128::from(extend(by, size) as i64);
        let (quotient, remainder) = (dividend.checked_div(by)?, dividend.checked_rem(by)?);
        let fits = quotient == i128::from(extend(quotient as u64, size) as i64);
        fits.then_some((quotient as u64 & mask, remainder as u64 & mask))
    } else {
        let by = u128::from(by & mask);
        let (quotient, remainder) = (dividend.checked_div(by)?, dividend.checked_rem(by)?);
        (quotient <= u128::from(mask)).then_some((quotient as u64, remainder as u64))
    }
}

/// pdep: scatters the low bits of `value` to the positions of the ones in `mask`.
pub fn deposit(value: u64, mask: u64) -> u64 {
    ones(mask).filter(|(_, low)| value & low != 0).fold(0, |all, (one, _)| all | one)
}

/// pext: packs the bits of `value` at the positions of the ones in `mask`.
pub fn gather(value: u64, mask: u64) -> u64 {
    ones(mask).filter(|(one, _)| value & one != 0).fold(0, |all, (_, low)| all | low)
}

/// The ones of a mask, the lowest first, each with the bit of its number.
fn ones(mask: u64) -> impl Iterator<Item = (u64, u64)> {
    let all = (0..64).map(|at| 1 << at);
    all.clone().filter(move |one| mask & one != 0).zip(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_as_the_manual_defines() {
        // 0x7f + 1 overflows without a carry; 0xff + 1 carries without overflow.
        let none = Flags::default();
        let (result, flags) = compute(Action::Add, 0x7f, 1, none, 1).unwrap();
        assert_eq!((result, flags.carry, flags.overflow), (0x80, false, true));
        assert!(flags.hold(ConditionCode::s) && flags.hold(ConditionCode::ge));
        let (result, flags) = compute(Action::Add, 0xff, 1, none, 1).unwrap();
        assert_eq!((result, flags.carry, flags.overflow), (0, true, false));
        assert!(flags.hold(ConditionCode::e) && flags.hold(ConditionCode::be));
        let (_, flags) = compute(Action::Cmp, 3, 5, none, 4).unwrap();
        assert!(flags.hold(ConditionCode::l) && flags.hold(ConditionCode::b));
        let (result, _) = compute(Action::Sbb, 9, 9, Flags { carry: true, ..none }, 4).unwrap();
        assert_eq!(result, 0xffff_ffff);
    }

    #[test]
    fn edge_cases_of_shifts_and_products_are_exact() {
        let none = Flags::default();
        let of = |action, a, b, size| compute(action, a, b, none, size).unwrap().0;
        assert_eq!(of(Action::Rol, 0x81, 1, 1), 0x03);
        assert_eq!(of(Action::Ror, 0x81, 9, 1), 0xc0);
        assert_eq!(of(Action::Sar, 0x80, 31, 1), 0xff);
        assert_eq!(of(Action::Shl, 1, 32, 4), 1, "a count of 32 is taken as 0");
        assert_eq!(of(Action::Shl, 0xff, 16, 2), 0);
        assert_eq!(of(Action::Bsr, 0x10, 0, 4), 4);
        assert_eq!(of(Action::BitSet, 0x10, 33, 4), 0x12, "a bit offset of 33 is taken as 1");
        assert_eq!(of(Action::BitReset, 0x10, 4, 8), 0);
        assert_eq!(of(Action::BitComplement, 0x10, 63, 8), 1 << 63 | 0x10);
        assert!(compute(Action::BitTest, 0x10, 20, none, 2).unwrap().1.carry);
        assert_eq!(of(Action::Lzcnt, 0, 0, 2), 16);
        assert_eq!(product(u64::MAX, 2, false, 8), (u64::MAX - 1, 1));
        assert_eq!(product(u64::MAX, 2, true, 8), (u64::MAX - 1, u64::MAX));
        assert_eq!(quotient(0, 7, 2, false, 4), Some((3, 1)));
        assert_eq!(quotient(u64::MAX, -7_i64 as u64, 2, true, 8), Some((-3_i64 as u64, u64::MAX)));
        assert_eq!(quotient(1, 0, 1, false, 8), None);
        assert_eq!((deposit(0b101, 0xf0), gather(0x5f, 0xf0)), (0x50, 5));
    }
}
