//! The evidence after the answer: code, forms, assumptions, tree, what-if list.

use super::answer::{CUT, gains, modes};
use super::remedy::remedy;
use super::rows::{Rows, Weight};
use bench::{FormResult, Line, Measurement, Outcome, Status};

/// Relative difference of the forms that is worth a remark.
const DIFFERS: f64 = 0.05;

/// The instructions, an arrow at the one that failed.
pub fn code(rows: &mut Rows, report: &Measurement, narrow: bool) {
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
pub fn evidence(rows: &mut Rows, report: &Measurement) {
    if report.throughput.is_none() {
        return;
    }
    rows.blank();
    let verdict = &*report.hierarchy.verdict;
    // The answer has named the bound.
    let after_name =
        report.hierarchy.bound.and_then(|b| verdict.strip_prefix(b.name())?.strip_prefix(": "));
    rows.plain("evidence: ", after_name.unwrap_or(verdict));
}

/// Both forms side by side, and what it means if they disagree.
pub fn forms(rows: &mut Rows, report: &Measurement) {
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
                copies(forms.looped.copies)
            )
        } else {
            "A loop reuses few instructions: it needs less of the op cache, of cache lines and of \
             branch entries than the unrolled copies."
                .to_owned()
        };
        let text = format!("The loop takes {percent:+.1} % against the unrolled form. {why}");
        rows.plain("  ", text);
    }
    if let Some(t) = &report.throughput
        && t.modes.len() > 1
        && report.status == Status::Ok
    {
        let outside = t.modes.iter().any(|m| m.cycles < t.low || m.cycles > t.high);
        let why = match outside {
            true => {
                "; the headline and its interval are of the fastest that recurs, the others are other states of the same code"
            }
            false => "",
        };
        rows.plain("  modes: ", format!("{}{why}", modes(t)));
    }
}

fn copies(count: usize) -> String {
    if count == 1 { "one copy".to_owned() } else { format!("{count} copies") }
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
pub fn assumptions(rows: &mut Rows, report: &Measurement, verbose: bool, ask: &str) {
    if report.assumptions.is_empty() {
        return;
    }
    let of = |outcome| report.assumptions.iter().filter(move |i| i.outcome == outcome);
    let held = of(Outcome::Held).count();
    let all = report.assumptions.len();
    rows.blank();
    let more = match verbose {
        true => String::new(),
        false => format!(" ({ask} shows the evidence for each)"),
    };
    let text = match held == all {
        true => format!("all hold{more}"),
        false => format!("{held} of {all} hold{more}; the others:"),
    };
    rows.add("assumptions: ", text, Weight::Plain);
    for (outcome, word, weight) in [
        (Outcome::Violated, "VIOLATED", Weight::Alert),
        (Outcome::Unchecked, "not checkable here", Weight::Faint),
        (Outcome::Held, "holds", Weight::Plain),
    ] {
        for i in of(outcome).filter(|i| verbose || i.outcome != Outcome::Held) {
            rows.add(format!("  {:17}", i.name.word()), format!("{word}: {}", i.how), weight);
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
        rows.plain("  note: ", format!("{more} more pairs; --format json has all"));
    }
}

/// Changes that would lower the time.
pub fn what_if(rows: &mut Rows, report: &Measurement) {
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
pub fn misses(rows: &mut Rows, report: &Measurement) {
    if report.misses.is_empty() {
        return;
    }
    rows.heading("counted per iteration");
    for miss in &report.misses {
        let text = format!("{:.4}; {}", miss.per_iteration, miss.how);
        rows.plain(format!("  {:28}", miss.name), text);
    }
}
