//! A measured block as text: the answer (`answer`), then the evidence: code, forms, assumptions, the what-if list,
//! the tree, conditions of the measurement. `rows` lays it out; `csv` has blocks as CSV; `pair` has two side by
//! side.

mod answer;
pub mod csv;
mod pair;
mod rows;

use crate::format::{self, several};
use answer::{CUT, gains, modes, remedy};
use bench::{Explanation, FormResult, Line, Measurement, Node, Outcome, Status, Values};
use rows::{Rows, labelled};

pub use csv::{HEADER, finished, row};
pub use pair::{model_errors, pair, predictions};
pub use rows::{Row, Style, Weight};

/// The report as rows, for a page of any width.
pub fn rows(report: &Measurement, style: &Style) -> Vec<Row> {
    let mut rows = Rows::default();
    answer::answer(&mut rows, report);
    answer::bars(&mut rows, report, style);
    evidence(&mut rows, report);
    code(&mut rows, report, style.narrow);
    forms(&mut rows, report);
    assumptions(&mut rows, report, style.verbose, &style.more);
    what_if(&mut rows, report);
    tree(&mut rows, report);
    misses(&mut rows, report);
    samples(&mut rows, report, style.verbose);
    if style.verbose {
        values(&mut rows, report);
    }
    for layer in &report.sandbox {
        rows.blank();
        rows.add("sandbox: ", layer, Weight::Faint);
    }
    rows.0
}

/// The report as text, one line break at its end.
pub fn render(report: &Measurement, style: &Style) -> String {
    let mut out = String::new();
    for row in rows(report, style) {
        labelled(&mut out, &row.label, &row.text, style.width);
    }
    if style.ascii { format::ascii(&out) } else { out }
}

/// Relative difference of the forms that is worth a remark.
const DIFFERS: f64 = 0.05;

/// The instructions, an arrow at the one that failed.
fn code(rows: &mut Rows, report: &Measurement, narrow: bool) {
    if report.block.instructions.is_empty() {
        return;
    }
    let place = |line: &Line| line.address.clone().unwrap_or_else(|| line.offset.clone());
    let all = || report.block.instructions.iter();
    let width = all().map(|i| i.bytes.len()).max().unwrap_or(0);
    let places = all().map(|i| place(i).len()).max().unwrap_or(0).max(6);
    let at = report.location.as_ref().and_then(|p| p.instruction);
    rows.blank();
    for (i, line) in all().enumerate() {
        let mark = if at == Some(i) { ">" } else { " " };
        let label = match narrow {
            false => format!("{mark}{i:>3} {:>places$}  {:width$}  ", place(line), line.bytes),
            true => format!("{mark}{i:>3} "),
        };
        let weight = if at == Some(i) { Weight::Alert } else { Weight::Plain };
        rows.add(label, &line.text, weight);
    }
}

/// Why the bound is what it is.
fn evidence(rows: &mut Rows, report: &Measurement) {
    if report.throughput.is_none() {
        return;
    }
    rows.blank();
    // The answer has named the bound.
    let text = match &report.hierarchy.explanation {
        Some(Explanation::Verdict(verdict, part)) if part.is_empty() => verdict.why.clone(),
        _ => report.hierarchy.to_string(),
    };
    rows.plain("evidence: ", text);
}

/// Both forms side by side, and what it means if they disagree.
fn forms(rows: &mut Rows, report: &Measurement) {
    let Some(forms) = &report.forms else { return };
    rows.blank();
    rows.add("form        cycles      low     high  copies", "", Weight::Strong);
    form(rows, "unrolled", &forms.unrolled);
    form(rows, "loop", &forms.looped);
    // Where the loop is the headline, a note says what differs.
    if report.headline == bench::UNROLLED
        && let (Some(unrolled), Some(looped)) = (forms.unrolled.trusted(), forms.looped.trusted())
        && unrolled > 0.0
        && (looped - unrolled).abs() > (DIFFERS * unrolled).max(0.03)
    {
        let percent = 100.0 * (looped / unrolled - 1.0);
        let why = if percent > 0.0 {
            format!(
                "A loop adds its counter and a taken branch, at least one cycle for the {} in its \
                 body; and a block that writes memory forwards the same few stores repeatedly.",
                several(forms.looped.copies, "copy")
            )
        } else {
            "A loop reuses few instructions: it needs less of the op cache, of cache lines and of \
             branch entries than the unrolled copies."
                .to_owned()
        };
        let more = if percent > 0.0 { "more" } else { "less" };
        let text = format!(
            "The loop takes {:.1} % {more} time than the unrolled form. {why}",
            percent.abs()
        );
        rows.plain("  ", text);
    }
    if let Some(t) = &report.throughput
        && t.modes.len() > 1
        && report.status == Status::Ok
    {
        let inside = t.modes.iter().filter(|m| t.low <= m.cycles && m.cycles <= t.high).count();
        let why = match inside {
            // Of captured executions that differ, the headline is no state.
            0 => "; the headline is the mean over all executions",
            all if all == t.modes.len() => "",
            _ => {
                "; the headline and its interval are of the fastest that recurs, the others are other states of the same code"
            }
        };
        rows.plain("  modes: ", format!("{}{why}", modes(t)));
    }
}

fn form(rows: &mut Rows, name: &str, form: &FormResult) {
    match (form.cycles, form.low, form.high) {
        (Some(cycles), Some(low), Some(high)) => {
            let numbers = format!("{cycles:>7.3}  {low:>7.3}  {high:>7.3}  {:>6}", form.copies);
            rows.plain(format!("  {name:8} {numbers}"), "");
            if let Some(reason) = &form.reason {
                rows.plain("           ", reason);
            }
        }
        _ => {
            let reason = form.reason.as_deref().unwrap_or("not measured");
            rows.plain(format!("  {name:8} "), reason);
        }
    }
}

/// The assumptions: violated and unchecked ones with the evidence, the others as one line unless
/// `verbose`, which the reader asks for with `ask`.
fn assumptions(rows: &mut Rows, report: &Measurement, verbose: bool, ask: &str) {
    if report.assumptions.is_empty() {
        return;
    }
    let of = |outcome| report.assumptions.iter().filter(move |i| i.outcome == outcome);
    let count = |outcome, words: &str| match of(outcome).count() {
        0 => None,
        n => Some(format!("{n} {words}")),
    };
    let counts = [
        (of(Outcome::Held).count() == 1)
            .then(|| "1 holds".to_owned())
            .or_else(|| count(Outcome::Held, "hold")),
        count(Outcome::Violated, "violated"),
        count(Outcome::Unchecked, "not checked"),
    ];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    rows.blank();
    let more = match verbose {
        true => String::new(),
        false => format!(" ({ask} shows the evidence for each)"),
    };
    let text = match of(Outcome::Held).count() == report.assumptions.len() {
        true => format!("all hold{more}"),
        false => format!("{}{more}", counts.join(", ")),
    };
    rows.add("assumptions: ", text, Weight::Plain);
    for (outcome, word, weight) in [
        (Outcome::Violated, "VIOLATED", Weight::Alert),
        (Outcome::Unchecked, "not checked", Weight::Faint),
        (Outcome::Held, "holds", Weight::Plain),
    ] {
        for i in of(outcome).filter(|i| verbose || i.outcome != Outcome::Held) {
            rows.add(format!("  {:24}", i.name.state()), format!("{word}: {}", i.how), weight);
        }
    }
    alias_pairs(rows, &report.alias_pairs);
}

/// Pairs that are named; the document has all.
const PAIRS: usize = 4;

/// Accesses to the same memory only because registers start with the same value.
fn alias_pairs(rows: &mut Rows, pairs: &[String]) {
    for pair in pairs.iter().take(PAIRS) {
        rows.plain("  note: ", pair);
    }
    if pairs.len() > PAIRS {
        let more = pairs.len() - PAIRS;
        rows.plain("  note: ", format!("{}; --format json has all", several(more, "more pair")));
    }
}

/// Changes that would lower the time.
fn what_if(rows: &mut Rows, report: &Measurement) {
    if report.what_if.is_empty() {
        return;
    }
    // Without an instruction, or with one more, the jump no longer goes to the start.
    match report.baseline().filter(|_| report.headline == bench::LOOP) {
        Some(unchanged) => {
            rows.heading("what if, in straight copies");
            let (cycles, low, high) = (unchanged.cycles, unchanged.low, unchanged.high);
            rows.plain("  unchanged: ", format!("{cycles:.3} cycles ({low:.3} to {high:.3})"));
        }
        None => rows.heading("what if"),
    }
    for what in &report.what_if {
        let text = match (what.cycles, what.low, what.high) {
            (Some(cycles), Some(low), Some(high)) => {
                let cut = if what.cuts && gains(report, what) { CUT } else { "" };
                format!("{cycles:.3} cycles ({low:.3} to {high:.3}){cut}")
            }
            _ => format!("not measured: {}", what.reason.as_deref().unwrap_or("no reason")),
        };
        rows.plain(format!("  {}: ", what.change), text);
    }
    let missing = report.what_if.iter().any(|w| w.cycles.is_none());
    if let Some(remedy) = remedy(report).filter(|_| missing && report.status == Status::Ok) {
        rows.plain("  try: ", remedy);
    }
}

/// Misses per iteration, where a PMU counted them.
fn misses(rows: &mut Rows, report: &Measurement) {
    if report.misses.is_empty() {
        return;
    }
    rows.heading("counted per iteration");
    for miss in &report.misses {
        let text = format!("{:.4}; {}", miss.per_iteration, miss.how);
        rows.plain(format!("  {:28}", miss.name), text);
    }
}

/// The rounds used and dropped. Without `verbose` only if any was dropped.
fn samples(rows: &mut Rows, report: &Measurement, verbose: bool) {
    let samples = &report.samples;
    let dropped = samples.contended + samples.clock_changed;
    if dropped == 0 && samples.void.is_empty() && (!verbose || samples.accepted == 0) {
        return;
    }
    rows.blank();
    let mut text = format!("{} used", samples.accepted);
    if samples.contended > 0 {
        text += &format!(", {} dropped: contention on the core", samples.contended);
    }
    if samples.clock_changed > 0 {
        text += &format!(", {} dropped: the clock changed", samples.clock_changed);
    }
    rows.plain("rounds   ", text);
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
        let differ = reasons.iter().any(|r| r != &reasons[0]);
        let example = if differ { " for example" } else { "" };
        let passes = several(reasons.len(), "pass");
        let text = format!("{passes} discarded:{example} {}", reasons[0]);
        rows.add("         ", text, Weight::Faint);
    }
}

/// The initial values and the pages mapped.
fn values(rows: &mut Rows, report: &Measurement) {
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

/// Deepest chain of parents that is followed; a document may have a cycle.
const DEEPEST: usize = 8;

/// Adds the nodes, parents before their children. Without counters the bounds have all there is.
fn tree(rows: &mut Rows, report: &Measurement) {
    if report.throughput.is_none() || !report.hierarchy.is_measured() {
        return;
    }
    rows.heading("top-down");
    let nodes = &report.hierarchy.nodes;
    for node in nodes {
        let indent = 2 * (1 + depth(nodes, node));
        let label = format!("{:indent$}{:<width$}", "", node.label, width = 30 - indent.min(28));
        let weight = match (node.is_verdict, node.share.or(node.bound)) {
            (true, _) => Weight::Strong,
            (_, Some(_)) => Weight::Plain,
            _ => Weight::Faint,
        };
        rows.add(label, node_text(node), weight);
    }
}

/// How many nodes are above it.
fn depth(nodes: &[Node], node: &Node) -> usize {
    let above = |id: &str| nodes.iter().find(|n| n.id == id).and_then(|n| n.parent.as_deref());
    std::iter::successors(node.parent.as_deref(), |id| above(id)).take(DEEPEST).count()
}

/// A node's share of the slots, and the bound that belongs to it.
fn node_text(node: &Node) -> String {
    let share = match (node.share, node.low, node.high) {
        (Some(share), Some(low), Some(high)) if low < high => Some(format!(
            "{:.1} % of slots ({:.1} to {:.1})",
            100.0 * share,
            100.0 * low,
            100.0 * high
        )),
        (Some(share), ..) => Some(format!("{:.1} % of slots", 100.0 * share)),
        _ if node.bound.is_none() => {
            Some(format!("not measured: {}", node.reason.as_deref().unwrap_or("no reason")))
        }
        _ => None,
    };
    let range = node.bound_low.zip(node.bound_high).filter(|(low, high)| high - low >= 0.005);
    let bound = node.bound.map(|bound| match range {
        Some((low, high)) => format!("{low:.2} to {high:.2} cycles"),
        None => format!("{bound:.2} cycles"),
    });
    let parts: Vec<String> = share.into_iter().chain(bound).collect();
    let mark = if node.is_verdict { " <- bounds the time" } else { "" };
    parts.join(", ") + mark
}

#[cfg(test)]
mod tests;
