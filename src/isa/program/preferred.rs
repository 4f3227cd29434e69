//! The name of code that has several.

use std::cmp::Reverse;

/// The smallest is the symbol of those at one address that `perf report` prefers (`choose_best_symbol` of
/// util/symbol.c), so that names agree: with a size; not weak; global; fewer leading underscores; longer
/// name.
pub fn preference(name: &str, size: u64, is_weak: bool, is_global: bool) -> impl Ord + use<> {
    let underscores = name.bytes().take_while(|&byte| byte == b'_').count();
    (size == 0, is_weak, !is_global, underscores, Reverse(name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_fewer_underscores_are_preferred() {
        let of = |name| preference(name, 8, false, true);
        assert!(of("random") < of("__random"));
        assert!(preference("__random", 8, false, true) < preference("random", 8, true, false));
    }
}
