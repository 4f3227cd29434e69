//! The built-in programs as text: a table of all, a description of one, the summary of a run.

use super::width::Page;
use std::fmt::Write as _;
use workload::{DefaultSize, SizeParameter, Summary, Workload};

/// Columns of a description.
const WIDTH: usize = 90;

/// One line per program: its name, the node it stresses, what it does.
pub fn table(workloads: &[Workload], page: Page) -> String {
    let heads = ["name", "Intel node", "AMD node"];
    let cells = |w: &Workload| [w.name, leaf(w.expected.intel), leaf(w.expected.amd)];
    let width = |column: usize| {
        let cells = workloads.iter().map(|w| cells(w)[column].len());
        cells.chain([heads[column].len()]).max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    let is_narrow = page.is_below(widths.iter().sum::<usize>() + WIDTH / 3);
    let line = |[a, b, c]: [&str; 3], text: &str| match is_narrow {
        false => format!("{a:0$}  {b:1$}  {c:2$}  {text}\n", widths[0], widths[1], widths[2]),
        // `tdtool workload list NAME` has the nodes.
        true => format!("{a:0$}  {text}\n", widths[0]),
    };
    let mut text = line(heads, "what it does");
    for w in workloads {
        let absent = if w.available { "" } else { " (not on this architecture)" };
        text += &line(cells(w), &format!("{}{absent}", w.summary));
    }
    text += "\none of them:                 `tdtool workload list NAME`\nwithout its bottleneck:      \
             `tdtool workload run NAME --control`\n";
    page.fitted(text)
}

/// The most specific node.
fn leaf(nodes: &[&'static str]) -> &'static str {
    nodes.first().copied().unwrap_or("-")
}

/// Everything about one program.
pub fn description(w: &Workload) -> String {
    let nodes = |ids: &[&str]| match ids {
        [] => "no node shows it".to_owned(),
        ids => ids.join(", else "),
    };
    let mut text = format!("{}: {}\n", w.name, w.summary);
    let mut row = |key: &str, value: &str| {
        let _ = writeln!(text, "  {key:10} {}", wrapped(value, 13));
    };
    if !w.available {
        row("here", "not on this architecture: its inner loop is x86-64 assembly");
    }
    row("Intel", &nodes(w.expected.intel));
    row("AMD", &nodes(w.expected.amd));
    row("expect", w.notes);
    row("--control", w.control);
    if let Some(size) = &w.size {
        row("--size", &size_text(size));
    }
    row("--repeats", &format!("{}; no limit by default", w.repeat));
    row("--seconds", "2 by default, without --repeats");
    row("iteration", w.iteration);
    text
}

fn size_text(size: &SizeParameter) -> String {
    let default = match size.default {
        DefaultSize::Fixed(n) => amount(n, size.unit),
        DefaultSize::BeyondCaches(n) => format!(
            "{}, or four times the largest cache if that is more, as far as memory allows",
            amount(n, size.unit)
        ),
    };
    format!("{}; {default} by default, at least {}", size.meaning, amount(size.least, size.unit))
}

fn amount(n: u64, unit: &str) -> String {
    match unit {
        "bytes" if n >= 1 << 20 && n.is_multiple_of(1 << 20) => format!("{}M", n >> 20),
        "bytes" if n >= 1 << 10 && n.is_multiple_of(1 << 10) => format!("{}K", n >> 10),
        _ => format!("{n} {unit}"),
    }
}

/// Breaks `text` at spaces so that lines indented by `indent` stay within [`WIDTH`] columns.
fn wrapped(text: &str, indent: usize) -> String {
    let mut column = indent;
    let mut out = String::new();
    for word in text.split(' ') {
        if column + word.len() > WIDTH && column > indent {
            let _ = write!(out, "\n{:indent$}", "");
            column = indent;
        } else if column > indent {
            out.push(' ');
        }
        out += word;
        column += word.len() + 1;
    }
    out
}

/// The summary of a run, in one line.
pub fn summary(s: &Summary) -> String {
    let control = if s.control { " (control)" } else { "" };
    let mut size = s.size.map(|n| format!(" size {n},")).unwrap_or_default();
    if s.copies > 1 {
        size += &format!(" {} copies,", s.copies);
    }
    let rate = s.rate.map(|r| format!(" ({:.2} {})", r.value, r.unit)).unwrap_or_default();
    let repeats = if s.repeats < 100.0 && s.repeats.fract() != 0.0 {
        format!("{:.2}", s.repeats)
    } else {
        format!("{:.0}", s.repeats)
    };
    format!(
        "{}{control}:{size} {} iterations in {:.3} s ({:.3} s CPU), {:.4} ns per {}{rate}, \
         {repeats} repeats, checksum {:#018x}\n",
        s.name, s.iterations, s.seconds, s.cpu_seconds, s.ns_per_iteration, s.iteration, s.checksum
    )
}
