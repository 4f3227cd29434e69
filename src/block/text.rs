//! A report for people.

use super::document::{FormResult, Holds, Report, Status};
use std::fmt::Write as _;

/// The report as text, one line break at its end.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    headline(&mut out, report);
    code(&mut out, report);
    if let Some(forms) = &report.forms {
        out.push('\n');
        form(&mut out, "unrolled", &forms.unrolled);
        form(&mut out, "loop", &forms.looped);
        if let (Some(a), Some(b)) = (forms.unrolled.cycles, forms.looped.cycles)
            && (a - b).abs() > 0.1 * a.min(b)
        {
            out += "  The forms disagree: a loop replays few instructions from the op cache and \
                    forwards stores by fewer entries.\n";
        }
    }
    if let Some(t) = &report.throughput
        && t.modes.len() > 1
    {
        let modes: Vec<_> =
            t.modes.iter().map(|m| format!("{:.3} ({:.0} %)", m.cycles, m.share * 100.0)).collect();
        let _ = writeln!(out, "  modes     {}", modes.join(", "));
    }
    if report.throughput.is_some() {
        let s = &report.samples;
        let _ = writeln!(out, "  samples   {} kept, {} dropped", s.kept, s.contended);
        let _ = writeln!(out, "  pages     {} mapped", report.pages.len());
    }
    if !report.invariants.is_empty() {
        out += "\nassumptions\n";
        for i in &report.invariants {
            let word = match i.verdict {
                Holds::Held => "held",
                Holds::Violated => "VIOLATED",
                Holds::Unchecked => "not checkable here",
            };
            let _ = writeln!(out, "  {:17} {word}: {}", i.name, i.how);
        }
    }
    for layer in &report.sandbox {
        let _ = writeln!(out, "\nsandbox: {layer}");
    }
    out
}

fn headline(out: &mut String, report: &Report) {
    let word = report.status.word();
    match (&report.throughput, report.status) {
        (Some(t), Status::Ok) => {
            let _ = writeln!(
                out,
                "{word}: {:.3} cycles per iteration ({:.3} to {:.3}), {:.2} instructions per \
                 cycle, clock {}",
                t.cycles,
                t.low,
                t.high,
                report.ipc.unwrap_or(f64::NAN),
                t.clock
            );
        }
        _ => {
            let _ = writeln!(out, "{word}: {}", report.reason.as_deref().unwrap_or("no reason"));
        }
    }
    if let Some(place) = &report.place {
        let mut parts = Vec::new();
        parts.extend(place.instruction.map(|i| format!("instruction {i}")));
        parts.extend(place.copy.map(|c| format!("copy {c}")));
        parts.extend(place.address.as_ref().map(|a| format!("address {a}")));
        if !parts.is_empty() {
            let _ = writeln!(out, "  at {} (counted from 0)", parts.join(", "));
        }
    }
}

fn code(out: &mut String, report: &Report) {
    let width = report.block.instructions.iter().map(|i| i.bytes.len()).max().unwrap_or(0);
    let at = report.place.as_ref().and_then(|p| p.instruction);
    out.push('\n');
    for (i, line) in report.block.instructions.iter().enumerate() {
        let mark = if at == Some(i) { ">" } else { " " };
        let _ = writeln!(out, "{mark} {:>5}  {:width$}  {}", line.offset, line.bytes, line.text);
    }
}

fn form(out: &mut String, name: &str, form: &FormResult) {
    let _ = match (form.cycles, form.low, form.high) {
        (Some(cycles), Some(low), Some(high)) => writeln!(
            out,
            "  {name:9} {cycles:.3} cycles ({low:.3} to {high:.3}), {} copies",
            form.copies
        ),
        _ => writeln!(out, "  {name:9} {}", form.reason.as_deref().unwrap_or("not measured")),
    };
}
