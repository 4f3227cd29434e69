//! Conditions of the measurement: rounds accepted and dropped, initial values, pages.

use super::rows::{Rows, Weight};
use bench::{Measurement, Values};

/// The rounds used and dropped. Without `verbose` only if any was dropped.
pub fn samples(rows: &mut Rows, report: &Measurement, verbose: bool) {
    let samples = &report.samples;
    let dropped = samples.contended + samples.clock_changed;
    if dropped == 0 && samples.void.is_empty() && (!verbose || samples.accepted == 0) {
        return;
    }
    rows.blank();
    let mut text = format!("{} rounds used", samples.accepted);
    if samples.contended > 0 {
        text += &format!(", {} dropped: contention on the core", samples.contended);
    }
    if samples.clock_changed > 0 {
        text += &format!(", {} dropped: the clock changed", samples.clock_changed);
    }
    rows.plain("samples  ", text);
    // A reason comes once for each pass, often with another number in it.
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    for reason in &samples.void {
        let words: String = reason.chars().filter(|c| !c.is_ascii_digit()).collect();
        match kinds.iter_mut().find(|(known, _)| *known == words) {
            Some((_, reasons)) => reasons.push(reason),
            None => kinds.push((words, vec![reason])),
        }
    }
    for (_, reasons) in kinds {
        let passes = if reasons.len() > 1 { "passes" } else { "pass" };
        let differ = reasons.iter().any(|r| r != &reasons[0]);
        let example = if differ { " for example" } else { "" };
        let text = format!("{} {passes} discarded:{example} {}", reasons.len(), reasons[0]);
        rows.add("         ", text, Weight::Faint);
    }
}

/// The initial values and the pages mapped.
pub fn values(rows: &mut Rows, report: &Measurement) {
    let Some(values) = &report.values else { return };
    rows.blank();
    rows.plain("values   ", initial(values));
    let shown: Vec<_> = report.pages.iter().take(6).map(String::as_str).collect();
    let mut text = report.pages.len().to_string();
    if !shown.is_empty() {
        text += &format!(": {}", shown.join(" "));
    }
    if report.pages.len() > shown.len() {
        text += &format!(" and {} more", report.pages.len() - shown.len());
    }
    rows.plain("pages    ", text);
}

/// The usual value of a register, and those that differ.
fn initial(values: &Values) -> String {
    const NAMES: [&str; 16] = [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15",
    ];
    let count = |value: u64| values.registers.iter().filter(|r| **r == value).count();
    let usual = values.registers.iter().copied().max_by_key(|v| count(*v)).unwrap_or(0);
    let named: Vec<String> = NAMES
        .iter()
        .zip(values.registers)
        .filter(|(_, value)| *value != usual || count(usual) == 1)
        .map(|(name, value)| format!("{name} {value:#x}"))
        .collect();
    let registers = match (named.len(), count(usual)) {
        (0, _) => format!("registers {usual:#x}"),
        (_, 1) => named.join(", "),
        _ => format!("{}, other registers {usual:#x}", named.join(", ")),
    };
    format!("{registers}; memory {:#x}; vectors {:#x}", values.memory, values.vector)
}
