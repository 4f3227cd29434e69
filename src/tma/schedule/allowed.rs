//! The counters that can count an event, as bits of a mask: general counters are bits 0…31, fixed counters 32…63.

use super::bits::Bits;
use super::budget::{Budget, FIXED_SLOTS};
use crate::tables::{EventId, PmuKind, Table};
use std::fmt;

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

/// The bit of a fixed counter.
pub(super) fn fixed_bit(index: u8) -> u64 {
    1 << (FIXED_SHIFT + u32::from(index))
}

/// Whether `event` counts slots on the fixed slots counter.
pub(super) fn is_slots(table: &Table, event: EventId) -> bool {
    let spec = &table.events[usize::from(event)].spec;
    spec.fixed == Some(FIXED_SLOTS) && spec.fixed_only && spec.metric.is_none()
}

/// The table's slots event.
pub(super) fn slots_event(table: &Table) -> Option<EventId> {
    (0..table.events.len()).map(|i| i as EventId).find(|e| is_slots(table, *e))
}
