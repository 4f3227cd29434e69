//! Comparing and printing build-ids.

/// Whether two build-ids are the same: older perf pads shorter ones to 20 bytes with zeros.
pub(crate) fn same_id(left: &[u8], right: &[u8]) -> bool {
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    let (start, padding) = long.split_at(short.len());
    !short.is_empty() && start == short && padding.iter().all(|&byte| byte == 0)
}

/// Build-ids as tools print them.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_may_be_padded_but_not_differ() {
        assert!(same_id(&[1, 2, 0, 0], &[1, 2]));
        assert!(same_id(&[1, 2], &[1, 2]));
        assert!(!same_id(&[1, 2, 3], &[1, 2]));
        assert!(!same_id(&[0, 0], &[]));
    }
}
