//! The bound, its critical cycle, and the assumptions behind both.

use super::drawing::{Drawing, wrapped};
use crate::documents::deps::{Cycle, Document};
use isa::deps::Order;
use std::fmt::Write as _;

/// The bound and its critical cycle, then the shorter cycles.
pub fn recurrences<'a>(
    out: &mut String,
    document: &'a Document,
    drawing: Drawing,
    sources: &mut Sources<'a>,
) {
    let Some((critical, others)) = document.recurrences.split_first() else {
        wrapped(out, 2, &none(document));
        return;
    };
    let bound = cycles(critical.low, critical.high);
    let line =
        format!("latency bound: at least {bound} per iteration, from a loop-carried dependency");
    wrapped(out, 2, &line);
    let over = match critical.iterations {
        1 => String::new(),
        n => format!(", once around in {n} iterations"),
    };
    let _ = writeln!(out, "critical cycle{over}:");
    path(out, critical, drawing, sources);
    for cycle in others {
        let over = match cycle.iterations {
            1 => String::new(),
            n => format!(" over {n} iterations"),
        };
        let _ = writeln!(
            out,
            "shorter loop-carried dependency, {}{over}:",
            cycles(cycle.low, cycle.high)
        );
        path(out, cycle, drawing, sources);
    }
}

/// The steps of a cycle, each with its latency and the number of its source.
fn path<'a>(out: &mut String, cycle: &'a Cycle, drawing: Drawing, sources: &mut Sources<'a>) {
    let arrow = if drawing.ascii { "->" } else { "→" };
    for step in &cycle.path {
        let delta = match step.delta {
            0 => String::new(),
            1 => " of the iteration before".to_owned(),
            n => format!(" of {n} iterations before"),
        };
        let forwarded =
            step.forwarding.map_or(String::new(), |f| format!(", forwarded ({})", f.name()));
        let line = format!(
            "  {}{delta} {arrow} {} {}: {}{forwarded} [{}]",
            step.through,
            step.address,
            step.text,
            span(step.low, step.high),
            sources.number(&step.source),
        );
        wrapped(out, 6, &line);
    }
}

/// Where no cycle of dependencies takes time.
fn none(document: &Document) -> String {
    let earlier = document.dependencies.iter().filter(|d| d.order == Order::Raw && d.delta > 0);
    let mut through: Vec<&str> = earlier.map(|d| d.through.as_str()).collect();
    through.sort_unstable();
    through.dedup();
    match through.as_slice() {
        [] => "latency bound: none; no loop-carried dependency".to_owned(),
        places => format!(
            "latency bound: none; the loop-carried dependencies ({}) add no latency",
            places.join(", ")
        ),
    }
}

/// Assumptions of the answer: the processor, the latencies, the initial values.
pub fn model(out: &mut String, document: &Document, sources: &Sources) {
    let subject = &document.subject;
    let uarch = subject.uarch.as_deref().unwrap_or("processor unknown");
    let iterations = match document.iterations {
        // No memory is followed where there is none.
        0 => String::new(),
        number => format!(
            "; addresses simulated over {number} iterations in {} runs, nothing executed",
            document.runs
        ),
    };
    let (entries, source) = (subject.window, &subject.window_source);
    let text =
        format!("model: {uarch}, reorder buffer of {entries} entries ({source}){iterations}");
    wrapped(out, 2, &text);
    if let Some(from) = &subject.seeded {
        wrapped(out, 2, &format!("initial values: {from}"));
    }
    for (at, source) in sources.0.iter().enumerate() {
        wrapped(out, 6, &format!("  [{}] {source}", at + 1));
    }
}

/// Where latencies are from, each source once.
#[derive(Default)]
pub struct Sources<'a>(Vec<&'a str>);

impl<'a> Sources<'a> {
    /// The number of `source`, from 1.
    fn number(&mut self, source: &'a str) -> usize {
        let at = self.0.iter().position(|s| *s == source).unwrap_or_else(|| {
            self.0.push(source);
            self.0.len() - 1
        });
        at + 1
    }
}

/// A lower bound: its low end, and how far it may go up.
fn cycles(low: f64, high: f64) -> String {
    let unit = if number(low) == "1" { "cycle" } else { "cycles" };
    let more = if low < high { format!(" (up to {})", number(high)) } else { String::new() };
    format!("{} {unit}{more}", number(low))
}

fn span(low: f64, high: f64) -> String {
    if low == high { number(low) } else { format!("{} to {}", number(low), number(high)) }
}

fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
