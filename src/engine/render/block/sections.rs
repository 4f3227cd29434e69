//! The sections of a report behind its disassembly.

use super::layout::{REMEDY, labelled, paragraph};
use bench::{Bound, FormResult, Holds, Node, Report, Status, Throughput, Values};

/// Relative difference of the forms that is worth a remark.
const DIFFERS: f64 = 0.05;

/// Both forms side by side, and what it means if they disagree.
pub fn forms(out: &mut String, report: &Report) {
    let Some(forms) = &report.forms else { return };
    *out += "\nform        cycles      low     high  copies\n";
    form(out, "unrolled", &forms.unrolled);
    form(out, "loop", &forms.looped);
    if let (Some(unrolled), Some(looped)) = (forms.unrolled.trusted(), forms.looped.trusted())
        && unrolled > 0.0
        && (looped - unrolled).abs() > (DIFFERS * unrolled).max(0.03)
    {
        let percent = 100.0 * (looped / unrolled - 1.0);
        let why = if percent > 0.0 {
            format!(
                "A loop adds the counting and a taken jump, at least a cycle for the {} of its \
                 body, which shows in short or dense blocks; and where the block writes memory, \
                 its one copy forwards the same few stores again and again.",
                copies(forms.looped.copies)
            )
        } else {
            "A loop replays few instructions and needs little room in the op cache; and the lines \
             and entries that many straight copies use one after the other are few in a loop."
                .to_owned()
        };
        let text = format!("The loop takes {percent:+.1} % against the unrolled form. {why}");
        paragraph(out, 2, &text);
    }
    if let Some(t) = &report.throughput
        && t.modes.len() > 1
        && report.status == Status::Ok
    {
        labelled(out, "  modes: ", &modes(t));
    }
}

fn copies(count: usize) -> String {
    if count == 1 { "one copy".to_owned() } else { format!("{count} copies") }
}

fn form(out: &mut String, name: &str, form: &FormResult) {
    match (form.cycles, form.low, form.high) {
        (Some(cycles), Some(low), Some(high)) => {
            *out +=
                &format!("  {name:8} {cycles:>7.3}  {low:>7.3}  {high:>7.3}  {:>6}\n", form.copies);
            if let Some(reason) = &form.reason {
                labelled(out, "           ", reason);
            }
        }
        _ => {
            let reason = form.reason.as_deref().unwrap_or("not measured");
            labelled(out, &format!("  {name:8} "), reason);
        }
    }
}

/// Groups of batches that agree, as `3.000 (75 %), 4.000 (25 %)`.
pub fn modes(throughput: &Throughput) -> String {
    let mode = |m: &bench::Mode| format!("{:.3} ({:.0} %)", m.cycles, m.share * 100.0);
    throughput.modes.iter().map(mode).collect::<Vec<_>>().join(", ")
}

/// What was kept, and what was dropped why.
pub fn samples(out: &mut String, report: &Report) {
    let samples = &report.samples;
    if samples.kept + samples.contended + samples.clock_changed == 0 && samples.void.is_empty() {
        return;
    }
    out.push('\n');
    let mut text = format!("{} kept", samples.kept);
    if samples.contended > 0 {
        text += &format!(", {} dropped: something else used the core", samples.contended);
    }
    if samples.clock_changed > 0 {
        text += &format!(", {} dropped: the clock changed", samples.clock_changed);
    }
    labelled(out, "samples  ", &text);
    // The same reason comes once for each pass.
    let mut left: &[String] = &samples.void;
    while let Some(reason) = left.first() {
        let same = left.iter().take_while(|r| *r == reason).count();
        let times = if same > 1 { format!("{same} passes") } else { "a pass".to_owned() };
        labelled(out, "         ", &format!("{times} void: {reason}"));
        left = &left[same..];
    }
}

/// What the block ran with.
pub fn values(out: &mut String, report: &Report) {
    if let Some(values) = &report.values {
        labelled(out, "values   ", &initial(values));
        let shown: Vec<_> = report.pages.iter().take(6).map(String::as_str).collect();
        let mut text = report.pages.len().to_string();
        if !shown.is_empty() {
            text += &format!(": {}", shown.join(" "));
        }
        if report.pages.len() > shown.len() {
            text += &format!(" and {} more", report.pages.len() - shown.len());
        }
        labelled(out, "pages    ", &text);
    }
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

/// Every assumption with its verdict and how that is known, violated ones first; of those that
/// held, the names alone unless all is wanted.
pub fn assumptions(out: &mut String, report: &Report, verbose: bool) {
    if report.invariants.is_empty() {
        return;
    }
    *out += "\nassumptions\n";
    let of = |verdict| report.invariants.iter().filter(move |i| i.verdict == verdict);
    for (verdict, word) in [(Holds::Violated, "VIOLATED"), (Holds::Unchecked, "not checkable here")]
    {
        for i in of(verdict) {
            labelled(out, &format!("  {:17}", i.name), &format!("{word}: {}", i.how));
        }
    }
    let held: Vec<&str> = of(Holds::Held).map(|i| i.name).collect();
    if verbose {
        for i in of(Holds::Held) {
            labelled(out, &format!("  {:17}", i.name), &format!("held: {}", i.how));
        }
    } else if !held.is_empty() {
        let names = held.join(", ");
        labelled(out, "  held: ", &format!("{names} (--verbose tells how each is known)"));
    }
    meetings(out, &report.meetings);
}

/// Pairs that are named; the document has all.
const PAIRS: usize = 4;

/// Accesses that meet because nothing says that they start apart.
fn meetings(out: &mut String, meetings: &[String]) {
    for meeting in meetings.iter().take(PAIRS) {
        labelled(out, "  note: ", meeting);
    }
    if meetings.len() > PAIRS {
        let more = meetings.len() - PAIRS;
        labelled(out, "  note: ", &format!("{more} pairs more; --format json has all"));
    }
}

/// Bounds with their share of the throughput.
pub fn bounds(out: &mut String, report: &Report) {
    if report.bounds.is_empty() {
        return;
    }
    *out += "\nbounds: the block cannot take less\n";
    for bound in &report.bounds {
        let range = match bound.low < bound.high {
            true => format!(" ({:.3} to {:.3})", bound.low, bound.high),
            false => String::new(),
        };
        let share = match &report.throughput {
            Some(t) if t.cycles > 0.0 => format!(", {}", share(bound, bound.cycles / t.cycles)),
            _ => String::new(),
        };
        let text = format!("{:.3} cycles{range}{share}; {}", bound.cycles, bound.how);
        labelled(out, &format!("  {:17}", bound.name), &text);
    }
}

/// A bound's share of the throughput. It cannot be more than all of it: what looks so is the error
/// of either, unless it is refuted.
fn share(bound: &Bound, share: f64) -> String {
    match share {
        _ if bound.refuted => {
            format!("{:.0} % of the throughput: above the measurement, refuted", 100.0 * share)
        }
        _ if share < 0.995 => format!("{:.0} % of the throughput", 100.0 * share),
        _ => "at the throughput, within error".to_owned(),
    }
}

/// The verdict on the tree, and its nodes where they were measured.
pub fn tree(out: &mut String, report: &Report) {
    if report.throughput.is_none() {
        return;
    }
    out.push('\n');
    labelled(out, "top-down: ", &report.hierarchy.verdict);
    let nodes = &report.hierarchy.nodes;
    let measured = report.hierarchy.is_measured();
    for node in nodes.iter().filter(|n| measured || n.bound.is_some() || n.is_verdict) {
        let indent = 2 * (1 + depth(nodes, node));
        let label = format!("{:indent$}{:width$}", "", node.label, width = 30 - indent.min(28));
        labelled(out, &label, &node_text(node, measured));
    }
}

/// How many nodes are above it. No tree is deeper; a document that runs in circles ends.
fn depth(nodes: &[Node], node: &Node) -> usize {
    let above = |id: &str| nodes.iter().find(|n| n.id == id).and_then(|n| n.parent.as_deref());
    std::iter::successors(node.parent.as_deref(), |id| above(id)).take(8).count()
}

/// A node's share of the slots where there is a PMU, and what it needs by itself. Bounds overlap: they
/// are cycles, not shares of a whole.
fn node_text(node: &Node, measured: bool) -> String {
    let share = match (node.share, node.low, node.high) {
        (Some(share), Some(low), Some(high)) => Some(format!(
            "{:.1} % of slots ({:.1} to {:.1})",
            100.0 * share,
            100.0 * low,
            100.0 * high
        )),
        (Some(share), ..) => Some(format!("{:.1} % of slots", 100.0 * share)),
        _ if measured && node.bound.is_none() => {
            Some(format!("not measured: {}", node.reason.as_deref().unwrap_or("no reason")))
        }
        _ => None,
    };
    let bound = node.bound.map(|b| format!("{b:.2} cycles"));
    let parts: Vec<String> = share.into_iter().chain(bound).collect();
    let mark = if node.is_verdict { " <- explains the time" } else { "" };
    parts.join(", ") + mark
}

/// What would lower the time.
pub fn what_if(out: &mut String, report: &Report) {
    if report.what_if.is_empty() {
        return;
    }
    out.push_str("\nwhat if\n");
    for what in &report.what_if {
        let text = match (what.cycles, what.low, what.high) {
            (Some(cycles), Some(low), Some(high)) => {
                format!("{cycles:.3} cycles ({low:.3} to {high:.3})")
            }
            _ => format!("not measured: {}", what.reason.as_deref().unwrap_or("no reason")),
        };
        labelled(out, &format!("  {}: ", what.change), &text);
    }
    let missing = report.what_if.iter().any(|w| w.cycles.is_none());
    if missing && report.status == Status::Ok && report.was_disturbed() {
        labelled(out, "  try: ", REMEDY);
    }
}

/// Misses per iteration, where a PMU counted them.
pub fn misses(out: &mut String, report: &Report) {
    if report.misses.is_empty() {
        return;
    }
    *out += "\ncounted per iteration\n";
    for miss in &report.misses {
        let text = format!("{:.4}; {}", miss.per_iteration, miss.how);
        labelled(out, &format!("  {:28}", miss.name), &text);
    }
}
