//! An estimated loop or block: the answer, its cycles, the parts of its time, its instructions.

use super::estimate_answer::so_far;
use super::estimate_row::{bar_titles, node_line};
use super::paragraphs::Paragraphs;
use crate::keymap::Command;
use crate::tui::look::{Look, Tone, fit_right};
use crate::tui::state::{Line, Piece, State};
use report::documents::estimate::{Part, Row};
use report::documents::estimate_code::Instruction;
use report::format;

/// Columns of the labels.
const LABEL: usize = 16;
/// Columns from which instructions have bars and remarks.
const WIDE: usize = 60;

/// Why a loop is not measured from its code alone.
pub const SEVERAL_PATHS: &str =
    "it has several paths: `tdtool block FILE:@ADDRESS -- ARGUMENTS` measures them";

/// Its lines.
pub fn lines(state: &State, columns: usize) -> Vec<Line> {
    let mut out = Paragraphs::new(columns);
    let (Some(row), Some(piece)) = (state.estimate.shown(), state.estimate.piece) else {
        return out.lines;
    };
    out.paragraph("", &(so_far(state) + &row.sentence), Tone::Bold);
    let key = state.keys.key(Command::Drill);
    let next = match (row.is_one_path(), row.next.is_empty()) {
        (true, true) => format!("{key} measures it in isolation."),
        (true, false) if row.bottleneck.0 == Some(Part::BadSpeculation) => {
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
    out.paragraph(&format!("{label:<LABEL$}"), text, Tone::Plain);
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
    let bound = row.bound.as_ref().map(|bound| format!(", bound by {bound}")).unwrap_or_default();
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
        format!("{cycles} cycles of an iteration, by the latencies of the instructions marked ●")
    });
    labelled(out, "critical path", &critical.unwrap_or_else(|| unknown(row, "critical_cycles")));
}

fn code(out: &mut Paragraphs, state: &State, row: &Row) {
    if row.code.is_empty() {
        return labelled(out, "instructions", &unknown(row, "code"));
    }
    if out.columns >= WIDE {
        let bars = bar_titles(cells(out.columns));
        out.push(format!("{} {bars}  instruction", fit_right("share", 8)), Tone::Dim);
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
    let mark = if one.critical { "●" } else { " " };
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
