//! The counters that can count an event, as bits of a mask: general counters are bits 0…31, fixed counters 32…63.

use super::budget::{Budget, FIXED_SLOTS};
use crate::tables::{EventId, PmuKind, Table};

/// Bit of fixed counter 0.
pub(super) const FIXED_SHIFT: u32 = 32;

/// The counters that can count `event` in isolation, or why none can. 0 for a metric event.
pub(super) fn counters_of(table: &Table, budget: &Budget, event: EventId) -> Result<u64, String> {
    let spec = &table.events[usize::from(event)].spec;
    if spec.pmu != PmuKind::Core {
        return Err("the core's counters do not count it".into());
    }
    if let Some(index) = spec.metric {
        let levels = u32::from(index) / 4 + 1;
        if levels > budget.topdown_levels || budget.fixed >> FIXED_SLOTS & 1 == 0 {
            return Err("the fixed top-down metrics are not available".into());
        }
        if slots_event(table).is_none() {
            return Err("the table has no slots event to lead its group".into());
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
            (Some(f), true) => format!("it needs fixed counter {f}, which is not available"),
            _ => "no counter that can count it is available".into(),
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
