//! Phases in words.

use crate::documents::report_parts::{Phase, PhaseValue};
use crate::format::number;

/// The values of a phase, the largest shares first.
pub(super) fn text(of: &Phase) -> String {
    let mut values: Vec<&PhaseValue> = of.values.iter().collect();
    if values.iter().all(|value| value.is_share) {
        values.sort_by(|a, b| b.value.unwrap_or(-1.0).total_cmp(&a.value.unwrap_or(-1.0)));
    }
    let text = |of: &PhaseValue| match of.value {
        None => format!("{} not measured", of.label),
        Some(value) if of.is_share => format!("{} {:.1} %", of.label, 100.0 * value),
        Some(value) => format!("{} {}", of.label, number(value)),
    };
    values.into_iter().map(text).collect::<Vec<_>>().join(", ")
}
