//! Time that a frame of a differential graph gained or lost, in words.

use crate::documents::flame::{Change, Compared};
use crate::format::seconds;

/// Subject of the graph.
pub(super) fn subtitle(compared: &Compared, samples: u64, event: &str) -> String {
    let [a, b] = compared.totals.map(|total| shown(total, &compared.unit));
    let times = if compared.unit == "ratio" { String::new() } else { format!(" (A {a}, B {b})") };
    format!("{samples} samples of {event} in B{times}; width: share of B")
}

/// Both sides of a frame, and their difference.
pub(super) fn details(compared: &Compared, change: &Change) -> String {
    let line = |what: &str, [a, b]: [f64; 2], margin: f64| {
        let (sign, size) = if b < a { ("-", a - b) } else { ("+", b - a) };
        let of = |value: f64| shown(value, &compared.unit);
        let (from, to, size, margin) = (of(a), of(b), of(size), of(margin));
        format!("\n{what}: {from} to {to}, {sign}{size} ± {margin}")
    };
    let all = || line("with callees", change.all, change.all_margin);
    let own = || line("the function itself", change.own, change.own_margin);
    match change.own {
        [0.0, 0.0] => all(),
        own_only if own_only == change.all => own(),
        _ => own() + &all(),
    }
}

fn shown(value: f64, unit: &str) -> String {
    match unit {
        "s" if value == 0.0 => "0 s".to_owned(),
        "s" => seconds(value),
        "ratio" => format!("{:.2} %", 100.0 * value),
        unit => format!("{value:.0} {unit}"),
    }
}
