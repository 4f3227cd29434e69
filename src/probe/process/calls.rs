//! Limits for tracing the system calls of a process, to see files that it maps: each costs some ten
//! microseconds.

/// Most system calls traced.
pub const MOST_CALLS: u32 = 20_000;
/// Most system calls traced without a mapping of code: loaders make few between two mappings.
pub const MOST_APART: u32 = 4_000;

/// System calls still to be traced: in all, and until one maps code.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calls {
    all: u32,
    until_next: u32,
}

impl Calls {
    /// Limits for a new program.
    pub const FIRST: Self = Self { all: MOST_CALLS, until_next: MOST_APART };
    /// No tracing.
    pub const NONE: Self = Self { all: 0, until_next: 0 };

    /// Whether the next call is traced.
    pub fn are_left(self) -> bool {
        self.all > 0 && self.until_next > 0
    }

    /// Limits after a call.
    pub fn after(self, maps_code: bool) -> Self {
        let until_next = if maps_code { MOST_APART } else { self.until_next.saturating_sub(1) };
        Self { all: self.all.saturating_sub(1), until_next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_traced_until_no_code_is_mapped_for_long() {
        let after = |calls: Calls, n: u32| (0..n).fold(calls, |calls, _| calls.after(false));
        let almost = after(Calls::FIRST, MOST_APART - 1);
        assert!(almost.are_left());
        assert!(!almost.after(false).are_left());
        assert!(after(almost.after(true), MOST_APART - 1).are_left());
        let mapping = (0..MOST_CALLS).fold(Calls::FIRST, |calls, _| calls.after(true));
        assert!(!mapping.are_left());
        assert!(!Calls::NONE.are_left());
    }
}
