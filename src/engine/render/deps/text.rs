//! The document as text: the code with arrows beside it, then everything by name.

use super::lanes::{Arrow, Signs, gutter, lanes};
use crate::documents::deps::{Dependency, Document};
use isa::deps::{Kind, Order, Overlap};
use std::fmt::Write as _;

/// How to draw.
#[derive(Debug, Clone, Copy, Default)]
pub struct Drawing {
    /// ASCII alone.
    pub ascii: bool,
    /// Arrows for every dependency, not just those through memory and of the slowest recurrence.
    pub every: bool,
}

/// Most arrows side by side.
const MOST_LANES: usize = 10;
/// Most lines of a list.
const MOST_LINES: usize = 60;

/// Columns of a line of prose; the code with its arrows takes what it needs.
const WIDTH: usize = 80;

/// Writes `line`, broken between words where it is too long; what follows is `indent` columns in.
fn wrapped(out: &mut String, indent: usize, line: &str) {
    let text = line.trim_start();
    let mut column = line.len() - text.len();
    out.extend(std::iter::repeat_n(' ', column));
    let mut first = true;
    // Two spaces in a row, which divide columns, stay.
    for word in text.split_inclusive(' ') {
        let long = word.trim_end().chars().count();
        if !first && column + long > WIDTH {
            out.truncate(out.trim_end().len());
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        }
        out.push_str(word);
        column += word.chars().count();
        first = false;
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
}

/// Renders `document`.
pub fn text(document: &Document, drawing: Drawing) -> String {
    let mut out = String::new();
    head(&mut out, document);
    code(&mut out, document, drawing);
    recurrences(&mut out, document, drawing);
    dependencies(&mut out, document, drawing);
    rest(&mut out, document);
    out
}

fn head(out: &mut String, document: &Document) {
    let subject = &document.subject;
    if let Some(name) = &subject.name {
        let _ = writeln!(out, "{name}");
    }
    let uarch = subject.uarch.as_deref().unwrap_or("processor unknown");
    let iterations = match document.iterations {
        // No memory is followed where there is none.
        0 => String::new(),
        number => format!("; {number} iterations, {} runs", document.runs),
    };
    let (entries, source) = (subject.window, &subject.window_source);
    wrapped(
        out,
        2,
        &format!("{uarch}; {entries} entries of reorder buffer ({source}){iterations}"),
    );
    if let Some(from) = &subject.seeded {
        wrapped(out, 2, &format!("initial values: {from}"));
    }
    for note in &subject.notes {
        wrapped(out, 2, &format!("note: {note}"));
    }
    out.push('\n');
}

/// Which dependencies get an arrow: the carriers of the slowest recurrence, then memory, then the
/// rest if wanted.
fn shown(document: &Document, every: bool) -> Vec<(usize, &Dependency)> {
    let steps = document.recurrences.first().map(|c| c.path.as_slice()).unwrap_or_default();
    let on_cycle = |d: &Dependency| {
        steps
            .iter()
            .any(|s| s.index == d.indices[1] && s.delta == d.delta && s.through == d.through)
    };
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
    let lanes = lanes(&arrows, MOST_LANES);
    let drawn = gutter(&arrows, &lanes, document.instructions.len(), Signs::new(drawing.ascii));
    let width = document.instructions.iter().map(|i| i.text.chars().count()).max().unwrap_or(0);
    let long = document.instructions.iter().map(|i| i.address.len()).max().unwrap_or(0);
    for (number, instruction) in document.instructions.iter().enumerate() {
        let into: Vec<String> = (shown.iter().zip(&lanes))
            .filter(|((_, d), lane)| lane.is_some() && d.indices[1] == number)
            .map(|((index, d), _)| format!("{}{}", label(*index), back(d)))
            .collect();
        let line = format!(
            "{:>long$} {} {:<width$}  {}",
            instruction.address,
            drawn[number],
            instruction.text,
            into.join(" ")
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let left = lanes.iter().filter(|lane| lane.is_none()).count();
    if left > 0 {
        let _ = writeln!(out, "{left} more arrows have no room here; the list below has all");
    }
    out.push('\n');
}

fn label(index: usize) -> String {
    format!("d{}", index + 1)
}

/// How many iterations back the writer is.
fn back(dependency: &Dependency) -> String {
    match dependency.delta {
        0 => String::new(),
        delta => format!("(-{delta})"),
    }
}

fn recurrences(out: &mut String, document: &Document, drawing: Drawing) {
    if document.recurrences.is_empty() {
        out.push_str(&none(document));
        return;
    }
    let mut sources = Sources::default();
    for (at, cycle) in document.recurrences.iter().enumerate() {
        let name = if at == 0 { "recurrence bound" } else { "recurrence" };
        let over = match cycle.iterations {
            1 => String::new(),
            n => format!(", once around in {n} iterations"),
        };
        let unit =
            if cycle.low == cycle.high && number(cycle.low) == "1" { "cycle" } else { "cycles" };
        let _ = writeln!(out, "{name}: {} {unit} an iteration{over}", span(cycle.low, cycle.high));
        let arrow = if drawing.ascii { "->" } else { "→" };
        for step in &cycle.path {
            let delta =
                if step.delta > 0 { format!(" of {} before", step.delta) } else { String::new() };
            let forwarded =
                step.forwarding.as_ref().map_or(String::new(), |f| format!(", forwarded ({f})"));
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
    out.push_str("latencies:\n");
    for (at, source) in sources.0.iter().enumerate() {
        wrapped(out, 6, &format!("  [{}] {source}", at + 1));
    }
    out.push('\n');
}

/// What is true of iterations where no recurrence takes time.
fn none(document: &Document) -> String {
    let earlier = document.dependencies.iter().filter(|d| d.order == Order::Raw && d.delta > 0);
    let mut through: Vec<&str> = earlier.map(|d| d.through.as_str()).collect();
    through.sort_unstable();
    through.dedup();
    match through.as_slice() {
        [] => "no recurrence: iterations do not wait for each other\n\n".to_owned(),
        places => {
            let places = places.join(", ");
            format!(
                "recurrences of 0 cycles at most: what an iteration takes from earlier ones ({places}) bounds nothing\n\n"
            )
        }
    }
}

/// Who says how long values take, each once.
#[derive(Default)]
struct Sources<'a>(Vec<&'a str>);

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

fn span(low: f64, high: f64) -> String {
    if low == high { number(low) } else { format!("{} to {}", number(low), number(high)) }
}

fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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
        out.push_str("may alias outside (nothing here says whether they meet):\n");
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
        let more = if others.is_empty() { "may alias outside: " } else { "" };
        let line = format!(
            "{more}{pairs} the stack on one side: they meet only where a local variable's address is passed on"
        );
        wrapped(out, 2, &line);
    }
    let more = !document.unmodelled.is_empty() || !document.unknown_results.is_empty();
    if more && !document.may_alias.is_empty() {
        out.push('\n');
    }
    for (title, list) in [
        ("not wholly modelled:", &document.unmodelled),
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
