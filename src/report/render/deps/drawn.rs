//! Draws the text of dependencies: options and wrapped lines, the bound and its longest chain, and arrows beside
//! the code, each in a lane of its own.

use crate::documents::deps::{Cycle, Document};
use crate::render::width::Page;
use isa::deps::Order;
use std::fmt::Write as _;

/// How to draw.
#[derive(Debug, Clone, Copy, Default)]
pub struct Drawing {
    /// ASCII alone.
    pub ascii: bool,
    /// Arrows for every dependency, not just those through memory and of the longest chain.
    pub every: bool,
    /// Where it is shown.
    pub page: Page,
}

/// Columns of a line of prose; where any line has room, the code with its arrows takes what it needs.
const WIDTH: usize = 80;

/// Writes `line`, broken between words where it is too long; what follows is `indent` columns in.
pub fn wrapped(out: &mut String, indent: usize, line: &str) {
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

/// The bound and its longest chain, then the others.
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
    let least = if may_be_none(critical.low, critical.high) { "" } else { "at least " };
    let line =
        format!("latency bound: {least}{bound} per iteration, from a loop-carried dependency");
    wrapped(out, 2, &line);
    let over = match critical.iterations {
        1 => String::new(),
        n => format!(", once around in {n} iterations"),
    };
    let may_be_longer = |cycle: &Cycle| cycle.high > critical.low;
    let certain = if others.iter().any(may_be_longer) { " certain" } else { "" };
    let _ = writeln!(out, "longest{certain} loop-carried chain{over}:");
    path(out, critical, drawing, sources);
    for cycle in others {
        let over = match cycle.iterations {
            1 => String::new(),
            n => format!(" over {n} iterations"),
        };
        let kind = match may_be_longer(cycle) {
            true => "other loop-carried chain, perhaps longer",
            false => "shorter loop-carried chain",
        };
        let _ = writeln!(out, "{kind}, {}{over}:", cycles(cycle.low, cycle.high));
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
            "  {}{delta} {arrow} {} {}: {} {}{forwarded} (source {})",
            step.through,
            step.address,
            step.text,
            span(step.low, step.high, " to "),
            if number(step.high) == "1" { "cycle" } else { "cycles" },
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
            "; addresses simulated over {number} iterations, which fill it, in {} runs, nothing executed",
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
        wrapped(out, 6, &format!("  source {}: {source}", at + 1));
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

/// What rounds to 0.00.
const LEAST_SHOWN: f64 = 0.005;

/// Whether a bound from `low` to `high` may be no bound at all.
fn may_be_none(low: f64, high: f64) -> bool {
    low < high && low < LEAST_SHOWN
}

/// A lower bound: its low end, and how far it may go up.
fn cycles(low: f64, high: f64) -> String {
    let unit = |of: f64| if number(of) == "1" { "cycle" } else { "cycles" };
    if may_be_none(low, high) {
        return format!("up to {} {}", number(high), unit(high));
    }
    let more = if low < high { format!(" (up to {})", number(high)) } else { String::new() };
    format!("{} {}{more}", number(low), unit(low))
}

/// `3 to 4.5`, with this word or sign between different ends.
pub fn span(low: f64, high: f64, to: &str) -> String {
    if low == high { number(low) } else { format!("{}{to}{}", number(low), number(high)) }
}

fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrow {
    /// Line it leaves.
    pub from: usize,
    /// Line its head is at; above `from` where it goes back.
    pub to: usize,
}

/// The characters of arrows.
#[derive(Debug, Clone, Copy)]
pub struct Signs {
    top: char,
    bottom: char,
    side: char,
    dash: char,
    head: char,
    cross: char,
    /// A corner that another arrow runs through.
    through: [char; 2],
    /// An arrow from a line to itself.
    round: char,
}

impl Signs {
    /// Box drawing, or ASCII.
    pub fn new(ascii: bool) -> Self {
        match ascii {
            true => Self {
                top: '+',
                bottom: '+',
                side: '|',
                dash: '-',
                head: '>',
                cross: '+',
                through: ['+', '+'],
                round: 'o',
            },
            false => Self {
                top: '┌',
                bottom: '└',
                side: '│',
                dash: '─',
                head: '►',
                cross: '┼',
                through: ['┬', '┴'],
                round: '○',
            },
        }
    }
}

/// The lane of each arrow, 0 nearest to the lines; `None` for those that have no room among `most`.
pub fn lanes(arrows: &[Arrow], most: usize) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..arrows.len()).collect();
    order.sort_by_key(|i| arrows[*i].from.abs_diff(arrows[*i].to));
    let mut taken: Vec<Vec<(usize, usize)>> = Vec::new();
    let mut found = vec![None; arrows.len()];
    for index in order {
        let (low, high) = ends(&arrows[index]);
        let free = |lane: &Vec<(usize, usize)>| lane.iter().all(|(a, b)| high < *a || *b < low);
        let lane = match taken.iter().position(free) {
            Some(lane) => lane,
            None if taken.len() < most => {
                taken.push(Vec::new());
                taken.len() - 1
            }
            None => continue,
        };
        taken[lane].push((low, high));
        found[index] = Some(lane);
    }
    found
}

fn ends(arrow: &Arrow) -> (usize, usize) {
    (arrow.from.min(arrow.to), arrow.from.max(arrow.to))
}

/// The gutter of each of `lines` lines, all of the same width.
pub fn gutter(
    arrows: &[Arrow],
    lanes: &[Option<usize>],
    lines: usize,
    signs: Signs,
) -> Vec<String> {
    let count = lanes.iter().flatten().max().map_or(0, |most| most + 1);
    let width = 2 * count + 1;
    let mut rows = vec![vec![' '; width]; lines];
    if count == 0 {
        return vec![String::new(); lines];
    }
    for (arrow, lane) in arrows.iter().zip(lanes) {
        let Some(lane) = lane else { continue };
        let column = 2 * (count - 1 - lane);
        let (low, high) = ends(arrow);
        for (line, row) in rows.iter_mut().enumerate().take(high + 1).skip(low) {
            let end = line == low || line == high;
            if end {
                for sign in &mut row[column + 1..width] {
                    *sign = match *sign {
                        sign if sign == signs.side => signs.cross,
                        sign if sign == signs.top => signs.through[0],
                        sign if sign == signs.bottom => signs.through[1],
                        ' ' => signs.dash,
                        other => other,
                    };
                }
            }
            let crossed = row[column] == signs.dash;
            row[column] = match (line == low, line == high) {
                (true, true) => signs.round,
                (true, false) if crossed => signs.through[0],
                (false, true) if crossed => signs.through[1],
                (true, false) => signs.top,
                (false, true) => signs.bottom,
                _ if row[column] == signs.dash => signs.cross,
                _ => signs.side,
            };
        }
        if let Some(row) = rows.get_mut(arrow.to) {
            row[width - 1] = signs.head;
        }
    }
    rows.into_iter().map(|row| row.into_iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_that_overlap_get_lanes_of_their_own() {
        let arrows = [Arrow { from: 0, to: 3 }, Arrow { from: 1, to: 2 }, Arrow { from: 3, to: 3 }];
        let lanes = lanes(&arrows, 8);
        let drawn = gutter(&arrows, &lanes, 4, Signs::new(true));
        assert_eq!(drawn, ["+----", "| +--", "| +->", "+-o->"]);
    }

    #[test]
    fn what_has_no_room_is_left_out() {
        let all = vec![Arrow { from: 0, to: 9 }; 5];
        assert_eq!(lanes(&all, 2).iter().flatten().count(), 2);
    }
}
