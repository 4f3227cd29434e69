//! Verdict on a condition, in a sentence.

use crate::documents::diff::{Crossing, Gate};

/// `crossed: time > +5%: +10.0 ± 4.2 %`.
pub(super) fn sentence(gate: &Gate, ascii: bool) -> String {
    let word = match gate.crossing {
        Crossing::Crossed => "crossed",
        Crossing::Held => "held",
        Crossing::Undecided => "undecided",
    };
    let plus_minus = if ascii { "+-" } else { "±" };
    let margin = gate.margin.map_or(String::new(), |margin| format!(" {plus_minus} {margin:.1}"));
    let unit = if gate.unit.is_empty() { String::new() } else { format!(" {}", gate.unit) };
    let change =
        gate.change.map_or(String::new(), |change| format!(": {change:+.1}{margin}{unit}"));
    let reason = gate.reason.as_ref().map_or(String::new(), |reason| format!("; {reason}"));
    format!("{word}: {}{change}{reason}", gate.condition)
}
