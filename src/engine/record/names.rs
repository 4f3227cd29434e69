//! perf's names of events, and the modifiers after their colon.

/// The most precise that `precise_ip` can be.
pub(super) const PRECISE: u8 = 3;
/// `PERF_TYPE_HARDWARE` and `PERF_TYPE_RAW`.
pub(super) const HARDWARE: u32 = 0;
/// See [`HARDWARE`].
pub(super) const RAW: u32 = 4;
/// `PERF_COUNT_SW_CPU_CLOCK`.
pub(super) const CPU_CLOCK: u64 = 0;
/// Software events by perf's names (`enum perf_sw_ids`).
pub(super) const SOFTWARE_EVENTS: [(&str, u64); 10] = [
    ("cpu-clock", CPU_CLOCK),
    ("task-clock", 1),
    ("page-faults", 2),
    ("faults", 2),
    ("context-switches", 3),
    ("cs", 3),
    ("cpu-migrations", 4),
    ("migrations", 4),
    ("minor-faults", 5),
    ("major-faults", 6),
];
/// Generic hardware events by perf's names (`enum perf_hw_id`).
pub(super) const HARDWARE_EVENTS: [(&str, u64); 9] = [
    ("cycles", 0),
    ("cpu-cycles", 0),
    ("instructions", 1),
    ("cache-references", 2),
    ("cache-misses", 3),
    ("branches", 4),
    ("branch-instructions", 4),
    ("branch-misses", 5),
    ("ref-cycles", 9),
];

/// perf's raw events: `r` and a hexadecimal config.
pub(super) fn raw(name: &str) -> Option<u64> {
    let digits = name.strip_prefix('r').filter(|d| !d.is_empty())?;
    u64::from_str_radix(digits, 16).ok()
}

/// The modifiers after the colon.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Modifiers {
    pub user_only: bool,
    pub kernel_only: bool,
    pub precise: u8,
    /// Less precise will do.
    pub any: bool,
}

impl Modifiers {
    /// `None`: it is none of perf's.
    pub fn parse(letters: &str) -> Option<Self> {
        let mut modifiers = Self::default();
        for letter in letters.chars() {
            match letter {
                'u' => modifiers.user_only = true,
                'k' => modifiers.kernel_only = true,
                'p' if modifiers.precise < PRECISE => modifiers.precise += 1,
                'P' => (modifiers.precise, modifiers.any) = (PRECISE, true),
                _ => return None,
            }
        }
        if modifiers.user_only && modifiers.kernel_only {
            (modifiers.user_only, modifiers.kernel_only) = (false, false);
        }
        Some(modifiers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_are_perfs() {
        let parsed = |text| Modifiers::parse(text).map(|m| (m.user_only, m.kernel_only, m.precise));
        assert_eq!(parsed("u"), Some((true, false, 0)));
        assert_eq!(parsed("ppk"), Some((false, true, 2)));
        assert_eq!(parsed("uk"), Some((false, false, 0)));
        assert_eq!(parsed("P"), Some((false, false, 3)));
        assert_eq!((parsed("pppp"), parsed("x")), (None, None));
    }

    #[test]
    fn raw_events_are_hexadecimal() {
        assert_eq!(raw("r01c2"), Some(0x1c2));
        assert_eq!((raw("r"), raw("resource"), raw("01c2")), (None, None, None));
    }
}
