//! Critical loads and hard branches as text.

use super::cells::{more, shortened};
use crate::documents::loads::{CriticalRow, Loads};
use std::fmt::Write as _;

pub(super) fn critical(document: &Loads, most: usize, out: &mut String) {
    if document.critical.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\ncritical loads: > 5 % of the loads, > 20 % of them miss the last cache, addresses neither constant \
         nor a stride (CRISP)"
    );
    let _ = writeln!(out, "  of loads  misses  load");
    for one in document.critical.iter().take(most) {
        let _ = writeln!(
            out,
            "  {:6.1} %  {:>6}  {} {}{}",
            100.0 * one.executed,
            misses(one),
            one.address,
            one.function.as_deref().unwrap_or(&one.module),
            critical_notes(one)
        );
    }
    more(document.critical.len(), most, out);
}

/// A bound is not rounded up.
fn misses(one: &CriticalRow) -> String {
    match one.misses_at_least {
        true => format!("≥ {:.0} %", (100.0 * one.misses).floor()),
        false => format!("{:.0} %", 100.0 * one.misses),
    }
}

fn critical_notes(one: &CriticalRow) -> String {
    let mut notes = Vec::new();
    match &one.class {
        Some(class) => notes.push(class.replace('_', " ")),
        None => notes.push("if its addresses are irregular, which is not known".to_owned()),
    }
    if let Some(slice) = one.slice.as_ref().filter(|slice| !slice.is_empty()) {
        notes.push(format!("slice {}", shortened(slice)));
    }
    match one.parallel {
        Some(misses) => {
            let least = if one.parallel_of.as_deref() == Some("cycles") { "≥ " } else { "" };
            notes.push(format!("MLP {least}{misses:.1}"));
        }
        None => notes.push("MLP not known".to_owned()),
    }
    if one.executed_of == "samples" {
        notes.push("share of the sampled loads, not of executed ones".to_owned());
    }
    if one.misses_of == "samples" {
        notes.push("misses of its samples".to_owned());
    }
    format!(": {}", notes.join("; "))
}

pub(super) fn hard_branches(document: &Loads, most: usize, out: &mut String) {
    if document.hard_branches.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nhard branches: > 15 % of their executions mispredicted, where these are not known (-) of the taken ones"
    );
    let _ = writeln!(out, "  mispredicted    taken  executions  branch");
    for one in document.hard_branches.iter().take(most) {
        let _ = writeln!(
            out,
            "  {:10.1} %  {:>7}  {:>10}  {} {}",
            100.0 * one.share,
            one.taken,
            one.executions.map_or("-".to_owned(), |n| n.to_string()),
            one.address,
            one.function.as_deref().unwrap_or(&one.module)
        );
    }
    more(document.hard_branches.len(), most, out);
}
