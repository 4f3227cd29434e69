//! Counters of one hardware thread, and those of them in use.

use crate::tables::{EventId, ExtraRegister, PmuKind, Table};

/// The fixed counter that counts core cycles (Intel SDM, vol. 3, "Fixed-function performance
/// counters": 0 instructions, 1 cycles, 2 reference cycles, 3 slots).
pub(super) const FIXED_CYCLES: u8 = 1;
/// The fixed counter that counts slots and carries the top-down metrics.
pub(super) const FIXED_SLOTS: u8 = 3;

/// Counters of one hardware thread that a plan may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// General counters, one bit each.
    pub general: u32,
    /// Fixed counters, one bit each.
    pub fixed: u32,
    /// Levels of fixed top-down metrics: 0, 1 or 2.
    pub topdown_levels: u32,
    /// The NMI watchdog runs: one more core-cycles event, on the fixed cycles counter or, where
    /// that is taken or missing, on a general one, competes with every group.
    pub watchdog: bool,
    /// An event that every group counts: the clock, on processors without a fixed cycles
    /// counter (AMD), where each group needs its own.
    pub always: Option<EventId>,
}

impl Budget {
    /// The counters `table` names, with SMT on or off and the NMI watchdog running or not.
    pub fn of(table: &Table, smt: bool, watchdog: bool) -> Self {
        let counters = &table.counters;
        let general = if smt { counters.general_smt } else { counters.general };
        let slots = u32::from(counters.topdown_levels > 0) << FIXED_SLOTS;
        let core_clock = table.events[usize::from(table.clocks)].spec.pmu == PmuKind::Core;
        let fixed = low_bits(counters.fixed) | slots;
        Self {
            general: low_bits(general),
            fixed,
            topdown_levels: counters.topdown_levels,
            watchdog,
            always: (core_clock && fixed == 0).then_some(table.clocks),
        }
    }

    /// Sets the number of general counters.
    #[must_use]
    pub fn with_general(mut self, count: u32) -> Self {
        self.general = low_bits(count);
        self
    }
}

/// How many different values of an extra register one group can hold. Two events with the same
/// value share the register (Linux, `__intel_shared_reg_get_constraints`).
pub(super) fn extra_limit(register: ExtraRegister) -> usize {
    match register {
        ExtraRegister::OffcoreRsp => 2,
        ExtraRegister::Frontend | ExtraRegister::Ldlat | ExtraRegister::SnoopRsp => 1,
    }
}

fn low_bits(count: u32) -> u32 {
    if count >= 32 { u32::MAX } else { (1 << count) - 1 }
}
