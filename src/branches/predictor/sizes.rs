//! How large the tables are, and which history lengths they see.

/// Bits of a bank's index where nothing else is known: 2,048 entries.
pub(super) const INDEX_BITS: u32 = 11;
/// Bits of a tag: one wrong match in 4,096.
pub(super) const TAG_BITS: u32 = 12;
/// Banks: between the 8 of the paper of 2006 and the 15 of that of 2011.
pub(super) const BANKS: usize = 12;
/// The shortest history.
const SHORTEST: usize = 3;
/// The history lengths, geometric from the shortest to `longest`.
pub(super) fn lengths(longest: usize) -> [usize; BANKS] {
    let longest = longest.max(SHORTEST + BANKS);
    let ratio = (longest as f64 / SHORTEST as f64).powf(1.0 / (BANKS - 1) as f64);
    let mut lengths =
        std::array::from_fn(|bank| (SHORTEST as f64 * ratio.powi(bank as i32)).round() as usize);
    for at in 1..BANKS {
        lengths[at] = lengths[at].max(lengths[at - 1] + 1);
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 3 × (640 ÷ 3)^(n ÷ 11).
    #[test]
    fn lengths_are_geometric() {
        assert_eq!(lengths(640), [3, 5, 8, 13, 21, 34, 56, 91, 148, 241, 393, 640]);
        assert!(lengths(0).windows(2).all(|pair| pair[0] < pair[1]));
    }
}
