//! Dependencies as text, as CSV rows and as a graph; `drawn` has the arrows and the bound of the text.

mod drawn;

use crate::documents::deps::{Census, Dependency, Document};
use crate::format::several;
use crate::render::csv::{self, number};
use drawn::{Arrow, Signs, Sources, gutter, lanes, model, recurrences, span, wrapped};
use isa::deps::memory::may_alias_pairs;
use isa::deps::{Analysis, Code, Kind, Order, Overlap};
use isa::effects::ArchReg;
use std::fmt::Write as _;

pub use drawn::Drawing;

/// Most arrows side by side.
const MOST_LANES: usize = 10;
/// Columns that the arrows leave to an instruction, with the gaps around it.
const CODE: usize = 24;
/// Most lines of a list.
const MOST_LINES: usize = 60;

/// Renders `document`.
pub fn text(document: &Document, drawing: Drawing) -> String {
    let mut out = String::new();
    if let Some(name) = &document.subject.name {
        let _ = writeln!(out, "{name}");
    }
    let mut sources = Sources::default();
    recurrences(&mut out, document, drawing, &mut sources);
    for note in &document.subject.notes {
        wrapped(&mut out, 2, &format!("note: {note}"));
    }
    out.push('\n');
    code(&mut out, document, drawing);
    dependencies(&mut out, document, drawing);
    rest(&mut out, document);
    if !document.may_alias.is_empty() {
        out.push('\n');
    }
    model(&mut out, document, &sources);
    drawing.page.fitted(out)
}

/// Which dependencies get an arrow: the carriers of the longest chain, then memory, then the
/// rest if wanted.
fn shown(document: &Document, every: bool) -> Vec<(usize, &Dependency)> {
    let steps = document.recurrences.first().map(|c| c.path.as_slice()).unwrap_or_default();
    let on_cycle = |d: &Dependency| steps.iter().any(|s| s.carries(d));
    let raw = document.dependencies.iter().enumerate().filter(|(_, d)| d.order == Order::Raw);
    let (first, rest): (Vec<_>, Vec<_>) = raw.partition(|(_, d)| on_cycle(d));
    let (memory, others): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|(_, d)| d.kind == Kind::Memory);
    let others = if every { others } else { Vec::new() };
    first.into_iter().chain(memory).chain(others).collect()
}

fn code(out: &mut String, document: &Document, drawing: Drawing) {
    let shown = shown(document, drawing.every);
    let arrows: Vec<Arrow> =
        shown.iter().map(|(_, d)| Arrow { from: d.indices[0], to: d.indices[1] }).collect();
    let long = document.instructions.iter().map(|i| i.address.len()).max().unwrap_or(0);
    let page = drawing.page;
    // An arrow takes two columns.
    let most = page.width().map_or(MOST_LANES, |all| all.saturating_sub(long + CODE) / 2);
    let lanes = lanes(&arrows, most.min(MOST_LANES));
    let drawn = gutter(&arrows, &lanes, document.instructions.len(), Signs::new(drawing.ascii));
    let width = document.instructions.iter().map(|i| i.text.chars().count()).max().unwrap_or(0);
    let before = long + 2 + drawn.first().map_or(0, |row| row.chars().count());
    let width = page.width().map_or(width, |all| width.min(all.saturating_sub(before)));
    for (number, instruction) in document.instructions.iter().enumerate() {
        let into: Vec<String> = (shown.iter().zip(&lanes))
            .filter(|((_, d), lane)| lane.is_some() && d.indices[1] == number)
            .map(|((index, d), _)| format!("{}{}", label(*index), back(d)))
            .collect();
        let text = page.cut(&instruction.text, width);
        let mut line = format!("{:>long$} {} {text:<width$}", instruction.address, drawn[number]);
        let into = into.join(" ");
        if !page.is_below(before + width + 2 + into.len()) {
            let _ = write!(line, "  {into}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    legend(out, &shown, drawing);
    let left = lanes.iter().filter(|lane| lane.is_none()).count();
    if left > 0 {
        let _ = writeln!(out, "{left} more arrows have no room here; the list below has all");
    }
    out.push('\n');
}

/// What the arrows, and signs beside them, mean.
fn legend(out: &mut String, shown: &[(usize, &Dependency)], drawing: Drawing) {
    let has = |is: &dyn Fn(&Dependency) -> bool| shown.iter().any(|(_, d)| is(d));
    let mut parts = Vec::new();
    if !shown.is_empty() {
        parts.push(match drawing.every {
            true => "arrows: all dependencies".to_owned(),
            false => "arrows: the longest chain and memory".to_owned(),
        });
    }
    if has(&|d| d.indices[0] == d.indices[1]) {
        parts.push(format!(
            "{}: from the instruction itself",
            if drawing.ascii { 'o' } else { '○' }
        ));
    }
    if has(&|d| d.delta > 0) {
        parts.push("(-N): read from N iterations before".to_owned());
    }
    if !parts.is_empty() {
        wrapped(out, 2, &parts.join("; "));
    }
}

fn label(index: usize) -> String {
    format!("d{}", index + 1)
}

/// The iteration of the writer, unless it is the reader's.
fn back(dependency: &Dependency) -> String {
    match dependency.delta {
        0 => String::new(),
        delta => format!("(-{delta})"),
    }
}

fn dependencies(out: &mut String, document: &Document, drawing: Drawing) {
    let _ = writeln!(out, "dependencies: {}", document.dependencies.len());
    let arrow = if drawing.ascii { "->" } else { "→" };
    for (index, d) in document.dependencies.iter().enumerate().take(MOST_LINES) {
        let order = match d.order {
            Order::Raw => "",
            Order::War => ", overwritten after reading",
            Order::Waw => ", written twice",
        };
        let overlap = match d.overlap {
            None | Some(Overlap::Full) => "",
            Some(Overlap::Partial) => ", partly: not forwarded",
            Some(Overlap::Blocked) => ", by several stores: not forwarded",
        };
        let delta = match d.delta {
            0 => String::new(),
            1 => ", 1 iteration later".to_owned(),
            n => format!(", {n} iterations later"),
        };
        let (writer, reader, through) = (&d.writer, &d.reader, &d.through);
        let place = format!("{through}{delta}{overlap}{order}");
        wrapped(out, 7, &format!("  {:<4} {writer} {arrow} {reader}  {place}", label(index)));
    }
    left_out(out, document.dependencies.len());
    if document.dependencies.iter().any(|d| d.kind == Kind::Flag) {
        out.push_str("SZAP: the flags SF, ZF, AF and PF, renamed as one\n");
    }
    out.push('\n');
}

fn left_out(out: &mut String, count: usize) {
    if count > MOST_LINES {
        let _ = writeln!(out, "  and {} more: --format json has all", count - MOST_LINES);
    }
}

fn rest(out: &mut String, document: &Document) {
    let (stack, others): (Vec<_>, Vec<_>) = document.may_alias.iter().partition(|m| m.stack);
    if !others.is_empty() {
        out.push_str("may alias (their addresses have unrelated origins):\n");
    }
    for pair in others.iter().take(MOST_LINES) {
        let (stores, others) = (pair.stores.join(" "), pair.others.join(" "));
        let (from, others_from) = (&pair.stores_from, &pair.others_from);
        wrapped(
            out,
            4,
            &format!(
                "  stores at {stores} (address from {from}) and {others} (from {others_from})"
            ),
        );
    }
    left_out(out, others.len());
    if !stack.is_empty() {
        let pairs = match stack.len() {
            1 => "1 pair has".to_owned(),
            many => format!("{many} pairs have"),
        };
        let more = if others.is_empty() { "may alias: " } else { "" };
        let line = format!(
            "{more}{pairs} the stack on one side: they alias only if a local variable's address escapes"
        );
        wrapped(out, 2, &line);
    }
    let more = !document.unmodelled.is_empty() || !document.unknown_results.is_empty();
    if more && !document.may_alias.is_empty() {
        out.push('\n');
    }
    for (title, list) in [
        ("modelled in part:", &document.unmodelled),
        ("results not computed:", &document.unknown_results),
    ] {
        if !list.is_empty() {
            let _ = writeln!(out, "{title}");
        }
        for item in list.iter().take(MOST_LINES) {
            wrapped(out, 6, &format!("  {} {}: {}", item.address, item.text, item.reason));
        }
        left_out(out, list.len());
    }
}

/// The columns.
pub const HEADER: &str = "hex,status,reason,instructions,register,flag,memory,may_alias,unmodelled,unknown_results,recurrence,low,high";

/// The row of a block, without a line break. `recurrence` is the lower bound, which `low` repeats;
/// `high` is the greatest with the maxima of all latencies. Without a recurrence they are empty.
pub fn row(hex: &str, code: &Code, analysis: &Analysis) -> String {
    let mut links: Vec<(usize, usize, u32, ArchReg)> =
        analysis.register_deps.iter().map(|l| (l.writer, l.reader, l.delta, l.reg)).collect();
    links.sort_unstable();
    links.dedup();
    let flags = links.iter().filter(|(.., reg)| reg.is_flag()).count();
    let mut memory: Vec<(usize, usize, u32)> =
        analysis.memory.dependencies.iter().map(|c| (c.writer, c.reader, c.delta)).collect();
    memory.sort_unstable();
    memory.dedup();
    let incomplete = analysis.unmodelled(code).count();
    let bound = analysis.recurrences.first();
    let high = analysis.recurrences.iter().map(|r| r.high).reduce(f64::max);
    csv::row([
        hex.to_owned(),
        "ok".to_owned(),
        String::new(),
        code.instructions.len().to_string(),
        (links.len() - flags).to_string(),
        flags.to_string(),
        memory.len().to_string(),
        may_alias_pairs(&analysis.memory.classes).count().to_string(),
        incomplete.to_string(),
        analysis.memory.opaque.len().to_string(),
        number(bound.map(|r| r.low)),
        number(bound.map(|r| r.low)),
        number(high),
    ])
}

/// The row of a block that is no code.
pub fn rejected(hex: &str, reason: &str) -> String {
    let columns = HEADER.split(',').count();
    let empty = std::iter::repeat_n("", columns - 3);
    csv::row([hex, "rejected", reason].into_iter().chain(empty))
}

/// Renders `document` for `dot`: instructions from top to bottom, arrows of later iterations
/// dashed, the slowest recurrence bold.
pub fn dot(document: &Document) -> String {
    let mut out = String::from(
        "digraph dependencies {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\"];\n",
    );
    let critical = document.recurrences.first();
    let steps = critical.map(|c| c.path.as_slice()).unwrap_or_default();
    if let Some(cycle) = critical {
        let range = span(cycle.low, cycle.high, "–");
        let text = format!(
            "bold: longest loop-carried chain, {range} cycles an iteration ({})",
            several(cycle.iterations, "iteration")
        );
        let _ = writeln!(out, "  label={};", quoted(&text));
    }
    for (index, instruction) in document.instructions.iter().enumerate() {
        let label = format!("{}  {}", instruction.address, instruction.text);
        let width = if steps.iter().any(|s| s.index == index) { 3 } else { 1 };
        let _ = writeln!(out, "  i{index} [label={}, penwidth={width}];", quoted(&label));
    }
    for index in 1..document.instructions.len() {
        let _ = writeln!(out, "  i{} -> i{index} [style=invis, weight=100];", index - 1);
    }
    for d in &document.dependencies {
        let slowest = d.order == Order::Raw && steps.iter().any(|s| s.carries(d));
        let delta = if d.delta > 0 { format!(" -{}", d.delta) } else { String::new() };
        let cycles = match &d.latency {
            Some(latency) => format!(": {}", span(latency.low, latency.high, "–")),
            None => String::new(),
        };
        let color = match (d.order, d.kind, d.overlap) {
            (Order::War | Order::Waw, ..) => "gray",
            (_, Kind::Memory, Some(Overlap::Partial | Overlap::Blocked)) => "red",
            (_, Kind::Memory, _) => "blue",
            (_, Kind::Flag, _) => "darkgreen",
            _ => "black",
        };
        let style = if d.delta > 0 { "dashed" } else { "solid" };
        let width = if slowest { 3 } else { 1 };
        let _ = writeln!(
            out,
            "  i{} -> i{} [label={}, color={color}, style={style}, penwidth={width}, constraint=false];",
            d.indices[0],
            d.indices[1],
            quoted(&format!("{}{delta}{cycles}", d.through)),
        );
    }
    out.push_str("}\n");
    out
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A header and one row per instruction and reason, the most frequent first.
pub fn census(census: &Census) -> String {
    let row =
        |(name, reason, count): (&str, &str, usize)| csv::line([name, reason, &count.to_string()]);
    let rows: String = census.counts().into_iter().map(row).collect();
    format!("instruction,reason,count\n{rows}")
}
