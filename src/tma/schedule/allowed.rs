//! The counters of a hardware thread, and those of them that can count an event, as bits of a mask: general counters are
//! bits 0…31, fixed counters 32…63.

use crate::tables::{EventId, ExtraRegister, PmuKind, Table};
use std::fmt;

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

/// Bit of fixed counter 0.
pub(super) const FIXED_SHIFT: u32 = 32;

/// Why no counter counts an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoCounter {
    /// The core's counters do not count it.
    OtherPmu,
    /// A top-down metric that the processor lacks or the budget leaves out.
    NoMetrics,
    /// A top-down metric in a table without slots.
    NoSlots,
    /// It needs this fixed counter, which is not available.
    Fixed(u8),
    /// Every counter that can count it is taken.
    Taken,
    /// The plan has too many events.
    Limit,
    /// Events of every group leave no counter for it.
    Crowded,
}

impl fmt::Display for NoCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherPmu => "the core's counters do not count it",
            Self::NoMetrics => "the fixed top-down metrics are not available",
            Self::NoSlots => "the table has no slots event to lead its group",
            Self::Fixed(number) => {
                return write!(f, "it needs fixed counter {number}, which is not available");
            }
            Self::Taken => "no counter that can count it is available",
            Self::Limit => return write!(f, "a plan is limited to {} events", Bits::CAPACITY),
            Self::Crowded => "the watchdog and the events of every group take all counters",
        })
    }
}

/// The counters that can count `event` in isolation, or why none can. 0 for a metric event.
pub(super) fn counters_of(
    table: &Table,
    budget: &Budget,
    event: EventId,
) -> Result<u64, NoCounter> {
    let spec = &table.events[usize::from(event)].spec;
    if spec.pmu != PmuKind::Core {
        return Err(NoCounter::OtherPmu);
    }
    if let Some(index) = spec.metric {
        let levels = u32::from(index) / 4 + 1;
        if levels > budget.topdown_levels || budget.fixed >> FIXED_SLOTS & 1 == 0 {
            return Err(NoCounter::NoMetrics);
        }
        if slots_event(table).is_none() {
            return Err(NoCounter::NoSlots);
        }
        return Ok(0);
    }
    let named = spec.counters.as_ref();
    let named = named.map(|list| list.iter().filter(|c| **c < 32).fold(0u32, |m, c| m | 1 << c));
    let general = if spec.fixed_only { 0 } else { named.unwrap_or(u32::MAX) & budget.general };
    let fixed = spec.fixed.filter(|f| *f < 32).map_or(0, |f| budget.fixed & 1 << f);
    let mask = u64::from(general) | u64::from(fixed) << FIXED_SHIFT;
    if mask == 0 {
        return Err(match (spec.fixed, spec.fixed_only) {
            (Some(f), true) => NoCounter::Fixed(f),
            _ => NoCounter::Taken,
        });
    }
    Ok(mask)
}

pub(super) fn fixed_bit(index: u8) -> u64 {
    1 << (FIXED_SHIFT + u32::from(index))
}

/// Whether `event` counts slots on the fixed slots counter.
pub(super) fn is_slots(table: &Table, event: EventId) -> bool {
    let spec = &table.events[usize::from(event)].spec;
    spec.fixed == Some(FIXED_SLOTS) && spec.fixed_only && spec.metric.is_none()
}

pub(super) fn slots_event(table: &Table) -> Option<EventId> {
    (0..table.events.len()).map(|i| i as EventId).find(|e| is_slots(table, *e))
}

const WORDS: usize = 8;

/// A set of numbers below [`Bits::CAPACITY`], copied by value: the planner compares and merges thousands of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Bits([u64; WORDS]);

impl Bits {
    /// Numbers from 0 up to this can be held.
    pub(super) const CAPACITY: usize = WORDS * 64;

    pub(super) fn insert(&mut self, i: usize) {
        debug_assert!(i < Self::CAPACITY);
        self.0[i / 64] |= 1 << (i % 64);
    }

    pub(super) fn or(&self, other: &Bits) -> Bits {
        self.with(other, |a, b| a | b)
    }

    pub(super) fn and(&self, other: &Bits) -> Bits {
        self.with(other, |a, b| a & b)
    }

    pub(super) fn minus(&self, other: &Bits) -> Bits {
        self.with(other, |a, b| a & !b)
    }

    pub(super) fn is_subset(&self, of: &Bits) -> bool {
        self.minus(of).is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    pub(super) fn len(&self) -> usize {
        let mut len = 0;
        let mut i = 0;
        while i < WORDS {
            len += self.0[i].count_ones() as usize;
            i += 1;
        }
        len
    }

    /// Members in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(w, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest.wrapping_sub(1);
                (bit < 64).then_some(w * 64 + bit)
            })
        })
    }

    // Plain loops: these run millions of times, and tests run them without optimisation.
    fn with(&self, other: &Bits, f: impl Fn(u64, u64) -> u64) -> Bits {
        let mut out = *self;
        let mut i = 0;
        while i < WORDS {
            out.0[i] = f(self.0[i], other.0[i]);
            i += 1;
        }
        out
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<I: IntoIterator<Item = usize>>(members: I) -> Self {
        let mut bits = Bits::default();
        for m in members {
            bits.insert(m);
        }
        bits
    }
}
