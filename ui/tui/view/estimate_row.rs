//! Draws functions, loops and blocks of an estimate: share, the parts of their time, bottleneck; and one of them in
//! full: the answer, its cycles, the parts of its time, its instructions.

use super::headline::so_far;
use super::names;
use super::put::{Paragraphs, heat};
use crate::keymap::Command;
use crate::tui::look::{Look, Tone, fit, fit_middle, fit_number, fit_right, width};
use crate::tui::state::{Piece, State, TextLine};
use ratatui::text::{Line, Span};
use report::documents::estimate::{Bottleneck, Instruction, Node, Part, Parts, Row};
use report::format::{self, percent_bounds};

/// The titles above five bars of so many cells each.
pub fn bar_titles(cells: usize) -> String {
    let names = if cells < 9 { SHORT } else { PARTS };
    let one = |name: &str| fit(&name.chars().take(cells).collect::<String>(), cells) + " ";
    names.into_iter().map(one).collect()
}

/// Title above shares of all samples.
const OF_ALL: &str = "of all";
/// Titles above the bars of the parts.
const PARTS: [&str; 5] = ["Retiring", "Bad spec.", "Frontend", "Backend", "Unexpl."];
/// Short titles.
pub const SHORT: [&str; 5] = ["Ret", "Spec", "Fe", "Be", "Unex"];

/// Widths of the columns; 0: not shown.
#[derive(Debug, Clone, Copy)]
pub struct Columns {
    /// Cells of each of the five bars.
    bar: usize,
    bottleneck: usize,
    /// Cycles per entry in the program and in isolation, and entries.
    cycles: usize,
    name: usize,
}

impl Columns {
    /// The widths on a screen of `columns` columns; loops and blocks have cycles.
    pub fn of(columns: usize, with_cycles: bool) -> Self {
        let bar = match columns {
            130.. => 9,
            110.. if !with_cycles => 9,
            90.. => 4,
            70.. if !with_cycles => 4,
            50.. => 2,
            _ => 0,
        };
        let bottleneck = if columns >= 30 { 15 } else { 0 };
        let cycles = match columns {
            _ if !with_cycles => 0,
            90.. => 28,
            70.. => 16,
            _ => 0,
        };
        let bars = if bar > 0 { 5 * (bar + 1) } else { 0 };
        let gap = |n: usize| if n > 0 { n + 1 } else { 0 };
        let used = 9 + bars + gap(bottleneck) + gap(cycles);
        Self { bar, bottleneck, cycles, name: columns.saturating_sub(used) }
    }

    /// The titles above them; `name` is that of the last one.
    pub fn titles(&self, name: &str) -> String {
        let mut text = fit_right(OF_ALL, 8) + " ";
        if self.bar > 0 {
            text += &bar_titles(self.bar);
        }
        if self.bottleneck > 0 {
            text += &(fit("bottleneck", self.bottleneck) + " ");
        }
        text += match self.cycles {
            28 => " cycles isolated    entries ",
            16 => " cycles isolated",
            _ => "",
        };
        if self.cycles > 0 {
            text += " ";
        }
        text + name
    }

    /// A function's row.
    pub fn of_function(&self, look: Look, row: &Row) -> Line<'static> {
        let whole = function(row);
        match width(&whole) > self.name {
            true => self.line(look, row, &fit_middle(names::short(&row.name), self.name)),
            false => self.line(look, row, &whole),
        }
    }

    /// A row; `name` is what its last column shows.
    pub fn line(&self, look: Look, row: &Row, name: &str) -> Line<'static> {
        let tone = heat(row.share);
        let mut spans = vec![look.span(share(row.share) + " ", tone)];
        if self.bar > 0 {
            spans.extend(bars(look, &row.parts, self.bar));
        }
        if self.bottleneck > 0 {
            let tone = if row.bottleneck == Bottleneck::default() { Tone::Dim } else { Tone::Bold };
            spans.push(look.span(fit(&bottleneck(row), self.bottleneck) + " ", tone));
        }
        if self.cycles > 0 {
            let number = |value: Option<f64>, columns, words: fn(f64) -> String| match value {
                Some(value) => fit_number(&words(value), value, columns),
                None => fit_right("-", columns),
            };
            let in_program = number(row.cycles_per_entry, 7, format::cycles);
            let mut text = format!("{in_program} {}", number(row.isolated, 8, format::cycles));
            if self.cycles > 16 {
                text += &format!(" {}", number(row.entries, 11, format::count));
            }
            spans.push(look.span(text + " ", Tone::Plain));
        }
        spans.push(Span::raw(fit(name, self.name)));
        Line::from(spans)
    }
}

/// Five bars: Retiring, Bad Speculation, Frontend, Backend, unexplained.
pub fn bars(look: Look, parts: &Parts, cells: usize) -> Vec<Span<'static>> {
    let level1 = parts.level1();
    let most = level1.iter().copied().fold(0.0, f64::max);
    let bar = |value: f64| {
        let tone = if value == most { Tone::Bold } else { Tone::Plain };
        look.span(look.bar(value, cells) + " ", tone)
    };
    level1.into_iter().map(bar).collect()
}

/// A share in 8 columns.
pub fn share(share: f64) -> String {
    fit_right(&format!("{:.2} %", 100.0 * share), 8)
}

/// The bottleneck in words.
pub fn bottleneck(row: &Row) -> String {
    match row.bottleneck {
        Bottleneck(None) if row.start.is_none() => "not divided".to_owned(),
        known => known.words(),
    }
}

/// `↺ loop 0x1953..0x195f`.
pub fn place(piece: Piece, row: &Row) -> String {
    let kind = match piece {
        Piece::Loop(_) => "↺ loop",
        Piece::Block(_) => "  block",
    };
    format!("{kind} {}", row.place())
}

/// A function's name.
pub fn function(row: &Row) -> String {
    match row.module.rsplit('/').next() {
        Some(module) if !module.is_empty() => format!("{}  {module}", names::short(&row.name)),
        _ => row.name.clone(),
    }
}

/// Columns of a label, and of the widest bar.
pub const LABEL: usize = 21;
const BAR: usize = 20;
/// Before labels by depth, such that the longest fits.
const INDENT: [&str; 3] = ["", "  ", "   "];

/// A node: label, bar, value, interval, source.
pub fn node_line(look: Look, node: &Node, is_bottleneck: bool, columns: usize) -> Line<'static> {
    let share = &node.share;
    let tone = match (is_bottleneck, share.high) {
        (true, _) => Tone::Hot,
        (_, high) if high < 0.005 => Tone::Dim,
        _ => Tone::Plain,
    };
    let label = format!("{}{}", INDENT[node.depth.min(2)], node.label);
    let mut spans = vec![look.span(fit(&label, LABEL.min(columns.saturating_sub(8))), tone)];
    let bar = columns.saturating_sub(LABEL + 52).min(BAR);
    if bar > 0 {
        spans.push(look.span(look.bar(share.value, bar) + " ", tone));
    }
    let value = match share.has_value() {
        true => format!("{:.1} %", 100.0 * share.value),
        false => "?".to_owned(),
    };
    spans.push(look.span(fit_right(&value, 8), tone));
    if columns >= 44 {
        let (low, high) = percent_bounds(share.low, share.high);
        let range = match share.has_value() || low != "0" {
            true => format!("{low} to {high} %"),
            false => format!("at most {high} %"),
        };
        spans.push(look.span(format!("  {}", fit(&range, 13)), tone));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    let mark = if is_bottleneck { "◀ bottleneck, " } else { "" };
    let reason = share.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let text =
        fit(&format!("{mark}{}{reason}", share.source.label()), columns.saturating_sub(used + 1));
    spans.push(look.span(format!(" {}", look.prose(text.trim_end())), tone));
    Line::from(spans)
}

/// Columns of the labels.
const NAME: usize = 16;
/// Columns from which instructions have bars and remarks.
const WIDE: usize = 60;

/// Why a loop is not measured from its code alone.
pub const SEVERAL_PATHS: &str =
    "it has several paths: `tdtool block FILE:@ADDRESS -- ARGUMENTS` measures them";

/// Its lines.
pub fn lines(state: &State, columns: usize) -> Vec<TextLine> {
    let mut out = Paragraphs::new(columns);
    let (Some(row), Some(piece)) = (state.estimate.shown(), state.estimate.piece) else {
        return out.lines;
    };
    out.paragraph("", &(so_far(state) + &row.sentence), Tone::Bold);
    let key = state.keys.key(Command::Drill);
    let next = match (row.is_one_path(), row.next.is_empty()) {
        (true, true) => format!("{key} measures it in isolation."),
        (true, false) if row.bottleneck.part() == Some(Part::BadSpeculation) => {
            format!("`{}`; {key} measures it with its branches predicted.", row.next)
        }
        (true, false) => format!("{key} measures it in isolation; or `{}`.", row.next),
        (false, true) => SEVERAL_PATHS.to_owned(),
        (false, false) => format!("`{}`.", row.next),
    };
    out.paragraph("next: ", &next, Tone::Plain);
    out.blank();
    numbers(&mut out, row, matches!(piece, Piece::Loop(_)));
    out.blank();
    for node in row.parts.tree() {
        let is_bottleneck = node.id == row.bottleneck.name();
        let line = node_line(state.look, &node, is_bottleneck, columns);
        let tone = if is_bottleneck { Tone::Hot } else { Tone::Plain };
        out.push(line.to_string().trim_end().to_owned(), tone);
    }
    out.blank();
    code(&mut out, state, row);
    out.lines
}

/// A labelled line.
fn labelled(out: &mut Paragraphs, label: &str, text: &str) {
    out.paragraph(&format!("{label:<NAME$}"), text, Tone::Plain);
}

/// Why something is missing.
fn unknown(row: &Row, name: &str) -> String {
    let why = row.reasons.get(name).map(String::as_str);
    format!("not known: {}", why.unwrap_or("nothing was recorded of it"))
}

fn numbers(out: &mut Paragraphs, row: &Row, is_loop: bool) {
    let each = if is_loop { "an iteration" } else { "an entry" };
    let cycles = row.cycles_per_entry.map(format::cycles);
    let cycles = cycles
        .map(|cycles| format!("{cycles} of {each} in the program"))
        .unwrap_or_else(|| "not known in the program: it was not counted".to_owned());
    let bound = row.bound.as_ref().map(|bound| format!(", bound: {bound}")).unwrap_or_default();
    let isolated = match row.isolated {
        Some(one) => format!("{} in isolation{bound}", format::cycles(one)),
        None => "not known in isolation: not measured, or not measurable".to_owned(),
    };
    labelled(out, "cycles", &format!("{cycles}; {isolated}"));
    let entries = row.entries.map_or("not known".to_owned(), format::count);
    labelled(out, if is_loop { "iterations" } else { "entries" }, &entries);
    if is_loop {
        let trips = row.trips.map(|trips| match trips {
            n if n < 1000.0 => format!("{n:.1} iterations of an entry, on average"),
            n => format!("{} iterations of an entry, on average", format::count(n.round())),
        });
        labelled(out, "trips", &trips.unwrap_or_else(|| unknown(row, "trips")));
    }
    let wrong =
        row.mispredicted.map(|share| format!("{:.1} % of its branches, modelled", 100.0 * share));
    labelled(out, "mispredicted", &wrong.unwrap_or_else(|| unknown(row, "mispredicted")));
    if row.code.iter().all(|one| one.levels.is_empty()) {
        labelled(out, "loads", &unknown(row, "loads"));
    }
    let critical = row.critical_cycles.map(|cycles| {
        let cycles = format::cycles(cycles);
        format!("{cycles} cycles of an iteration, by the latencies of the instructions marked ◆")
    });
    labelled(out, "critical path", &critical.unwrap_or_else(|| unknown(row, "critical_cycles")));
}

fn code(out: &mut Paragraphs, state: &State, row: &Row) {
    if row.code.is_empty() {
        return labelled(out, "instructions", &unknown(row, "code"));
    }
    if out.columns >= WIDE {
        let bars = bar_titles(cells(out.columns));
        out.push(format!("{} {bars}  instruction", fit_right(OF_ALL, 8)), Tone::Dim);
    }
    let mut last = None;
    for one in &row.code {
        let place = one.source.as_ref();
        if place.is_some() && place != last {
            let text = place.map(|(file, line)| format!("{}:{line}", super::names::file(file)));
            out.push(format!("{:>10}{}", "", text.unwrap_or_default()), Tone::Dim);
            last = place;
        }
        instruction(out, state, one);
    }
}

/// Cells of each of the five bars.
fn cells(columns: usize) -> usize {
    if columns >= 100 { 4 } else { 2 }
}

fn instruction(out: &mut Paragraphs, state: &State, one: &Instruction) {
    let text = instruction_text(state.look, one, out.columns);
    let tone = if one.critical { Tone::Bold } else { Tone::Plain };
    let text = crate::tui::look::fit(&text, out.columns);
    out.push(text.trim_end().to_owned(), tone);
}

/// An instruction, with what goes to it of the parts of its loop or block.
pub fn instruction_text(look: Look, one: &Instruction, columns: usize) -> String {
    let share = match one.samples {
        0 => String::new(),
        _ => format!("{:.2} %", 100.0 * one.share),
    };
    let mark = if one.critical { "◆" } else { " " };
    let bar: String = match columns >= WIDE {
        true => {
            let causes = one.causes.unwrap_or_default().level1();
            causes.into_iter().map(|share| look.bar(share, cells(columns)) + " ").collect()
        }
        false => String::new(),
    };
    let address = one.address.0;
    let mut text = format!("{} {bar}{mark} {address:x}  {}", fit_right(&share, 8), one.text);
    let remarks = remarks(one);
    if columns >= WIDE && !remarks.is_empty() {
        text += &format!("    {remarks}");
    }
    text
}

/// Levels of a load, mispredictions of a branch.
fn remarks(one: &Instruction) -> String {
    let levels = one.levels.iter().filter(|level| level.share >= 0.005);
    let levels = levels.map(|level| format!("{} {:.0} %", level.level, 100.0 * level.share));
    let wrong = one.mispredicted.map(|share| format!("{:.1} % mispredicted", 100.0 * share));
    levels.chain(wrong).collect::<Vec<_>>().join(", ")
}
