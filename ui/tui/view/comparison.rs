//! Two measurements compared: functions, loops and blocks by the time that they gain or lose, and above them what changed
//! in the row at the cursor.

use super::estimate_row::SHORT;
use super::names;
use super::put::{Layout, put_head, put_prose, put_rows};
use crate::keymap::{Command, Screen};
use crate::tui::look::{Look, Tone, fit, fit_middle, fit_right};
use crate::tui::state::{ComparedRow, InPlace, State};
use ratatui::buffer::Buffer;
use ratatui::text::{Line, Span};
use report::documents::diff::row::CodeRow;
use report::render::diff::{gain, place, plain, sentence};

/// Draws a screen of the comparison.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    let area = layout.list;
    if let Err(InPlace(why)) = state.comparison.data.or_text("reading both …") {
        return put_prose(buffer, area, state.look, why);
    }
    let columns = Columns::of(usize::from(area.width), has_bars(state));
    let title = if state.screen() == Screen::Comparison { "function" } else { "loop or block" };
    let titles = Line::from(state.look.span(columns.titles(title), Tone::Dim));
    put_head(state.look, buffer, layout.head, &answer(state), &titles);
    let list = state.list();
    if list.rows == 0 {
        let why = match state.filter().is_empty() {
            true => "no loop or block of it is known",
            false => "no row matches the filter",
        };
        return put_prose(buffer, area, state.look, why);
    }
    put_rows(buffer, area, list, |row| {
        let (which, of) = state.comparison.row(state.screen(), row)?;
        Some(columns.line(state.look, of, &named(state, which, of)))
    });
}

/// The name of a row; of a loop or block with its function, where those of all functions are shown.
fn named(state: &State, which: ComparedRow, of: &CodeRow) -> String {
    let is_of_all = state.screen() == Screen::ComparedCode && state.comparison.function.is_none();
    match is_of_all {
        true => format!("{}  {}", name(which, of), names::short(&of.time.label)),
        false => name(which, of),
    }
}

/// Whether any row has parts.
fn has_bars(state: &State) -> bool {
    let code = state.comparison.data.ready().and_then(|diff| diff.code.as_ref());
    code.is_some_and(|code| code.functions.iter().any(|row| row.level1.iter().any(Option::is_some)))
}

/// For the breadcrumb: the function whose loops and blocks are shown.
pub fn title(state: &State) -> String {
    let function = state.comparison.function.map(ComparedRow::Function);
    let row = function.and_then(|which| state.comparison.of(which));
    row.map_or_else(|| "all functions".to_owned(), |row| row.time.label.clone())
}

/// Widths of the columns; 0: not shown.
struct Columns {
    /// B - A, A and B.
    times: [usize; 3],
    /// Cells of each of the bars of a side.
    bar: usize,
    name: usize,
}

impl Columns {
    fn of(columns: usize, has_bars: bool) -> Self {
        let times = match columns {
            70.. => [12, 11, 11],
            40.. => [12, 0, 0],
            _ => [12.min(columns / 2), 0, 0],
        };
        let bar = match columns {
            _ if !has_bars => 0,
            130.. => 5,
            110.. => 3,
            94.. => 2,
            76.. => 1,
            _ => 0,
        };
        let bars = if bar > 0 { 2 * (SHORT.len() * (bar + 1) + 2) } else { 0 };
        let used: usize = times.iter().filter(|n| **n > 0).map(|n| n + 1).sum();
        Self { times, bar, name: columns.saturating_sub(used + bars) }
    }

    fn titles(&self, name: &str) -> String {
        let mut text = String::new();
        for (width, title) in self.times.into_iter().zip(["B - A", "A", "B"]) {
            if width > 0 {
                text += &(fit_right(title, width) + " ");
            }
        }
        for side in ["A", "B"] {
            if self.bar > 0 {
                text += &format!("{side} ");
                for part in SHORT {
                    let part: String = part.chars().take(self.bar).collect();
                    text += &(fit(&part, self.bar) + " ");
                }
            }
        }
        text + name
    }

    fn line(&self, look: Look, row: &CodeRow, name: &str) -> Line<'static> {
        let time = &row.time;
        let is_gain = time.difference.is_some_and(|d| d < 0.0);
        let tone = match (time.difference.is_none(), time.is_judged(), is_gain) {
            (true, ..) => Tone::Warm,
            (_, false, _) => Tone::Plain,
            (.., true) => Tone::Bold,
            (.., false) => Tone::Hot,
        };
        let texts = [gain(row), plain(row, time.a), plain(row, time.b)];
        let mut spans = Vec::new();
        for (i, (width, text)) in self.times.into_iter().zip(texts).enumerate() {
            if width > 0 {
                let tone = if i == 0 { tone } else { Tone::Plain };
                spans.push(look.span(fit_right(&text, width) + " ", tone));
            }
        }
        if self.bar > 0 {
            row.level1.iter().for_each(|side| self.bars(look, side.as_ref(), &mut spans));
        }
        let name = look.prose(name);
        // The beginning of a loop or block is enough to find it.
        let is_function = !name.contains("0x");
        let cut = if is_function { fit_middle } else { fit };
        spans.push(Span::raw(cut(&name, self.name)));
        Line::from(spans)
    }

    /// The parts of one side; the largest stands out.
    fn bars(&self, look: Look, shares: Option<&[f64; 5]>, spans: &mut Vec<Span<'static>>) {
        spans.push(look.span("│ ", Tone::Dim));
        let most = shares.map_or(0.0, |all| all.iter().copied().fold(0.0, f64::max));
        for part in 0..SHORT.len() {
            let share = shares.map_or(0.0, |all| all[part]);
            let tone = if share == most { Tone::Bold } else { Tone::Plain };
            spans.push(look.span(look.bar(share, self.bar) + " ", tone));
        }
    }
}

/// Change of the row at the cursor, and both sides.
pub fn answer(state: &State) -> String {
    let Some(diff) = state.comparison.data.ready() else { return String::new() };
    let screen = state.screen();
    let Some((which, row)) = state.comparison.row(screen, state.list().at) else {
        return String::new();
    };
    let what = match which {
        ComparedRow::Program | ComparedRow::Function(_) => {
            names::in_sentence(names::short(&row.time.label))
        }
        _ => name(which, row).trim().to_owned(),
    };
    let mut text = format!("{what}: {}", sentence(row));
    if screen == Screen::Comparison {
        let key = state.keys.key(Command::Drill);
        let [a, b] = &diff.reports;
        text += &format!(" {key} shows its loops and blocks. A: {a}; B: {b}.");
    }
    text
}

/// Its name on the screen.
pub fn name(which: ComparedRow, row: &CodeRow) -> String {
    match which {
        ComparedRow::Program => "(estimated part of the program)".to_owned(),
        ComparedRow::Function(_) => format!("{}  {}", row.time.label, row.module),
        ComparedRow::Loop(_) => place(row, "↺ loop"),
        ComparedRow::Block(_) => place(row, "  block"),
    }
}
