//! The intervals over time: level 1 stacked (else software counts), the phases below it, and a row for each.

use super::put::{Layout, put_rows};
use crate::tui::look::{Look, Tone};
use crate::tui::state::{State, mean};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use report::documents::report_parts::Phase;
use report::documents::series::{Interval, Series};
use report::format;
use std::cmp::Ordering;
use std::ops::Range;

/// Characters of a stack's parts, from below; and in ASCII.
const MARKS: [char; 6] = ['█', '░', '▒', '▓', '▚', '▞'];
const ASCII: [char; 6] = ['#', '.', '+', '=', '%', ':'];
/// Fewer intervals than this are said to be few.
const FEW: usize = 10;
const TONES: [Tone; 6] = [Tone::Plain, Tone::Dim, Tone::Warm, Tone::Hot, Tone::Plain, Tone::Plain];

/// Draws the screen.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    if let Some(view) = state.intervals.view() {
        charts(state, buffer, layout.head, &view);
    }
    put_rows(buffer, layout.list, state.list(), |row| {
        Some(line(state.look, row, state.intervals.phases.get(row)?))
    });
}

fn charts(state: &State, buffer: &mut Buffer, area: Rect, view: &Range<f64>) {
    let series = &state.intervals.series;
    let number = u16::try_from(series.len()).unwrap_or(1).max(1);
    if area.height < 5 {
        return;
    }
    let each = (area.height - 2) / number;
    for (y, one) in (area.y..).step_by(usize::from(each.max(1))).zip(series) {
        if each >= 2 && y + each <= area.bottom() {
            chart(state.look, buffer, Rect { y, height: each, ..area }, one, view);
        }
    }
    marks(state, buffer, Rect { y: area.bottom() - 2, height: 1, ..area }, view);
    let axis = axis(series.first(), view, usize::from(area.width));
    let axis = state.look.prose(&axis).into_owned();
    let style = state.look.style(Tone::Dim);
    buffer.set_stringn(area.x, area.bottom() - 1, axis, usize::from(area.width), style);
}

/// The ends of the time that is shown, and how many intervals are in it.
fn axis(series: Option<&Series>, view: &Range<f64>, columns: usize) -> String {
    let number = series.map_or(0, |series| seen(series, view));
    let more = if number < FEW { " only; more of them: `tdtool record -I 100`" } else { "" };
    let (from, to) = (format!("{:.2} s", view.start), format!("{:.2} s", view.end));
    let room = columns.saturating_sub(from.len() + to.len() + 2);
    let middle = [format!("{number} intervals{more}"), format!("{number} intervals")];
    let middle = middle.into_iter().find(|text| text.len() <= room).unwrap_or_default();
    format!("{from} {middle:^room$} {to}")
}

/// How many intervals are in the time that is shown.
fn seen(series: &Series, view: &Range<f64>) -> usize {
    let is_seen = |one: &&Interval| one.span.1 > view.start && one.span.0 < view.end;
    series.intervals.iter().filter(is_seen).count()
}

/// Whether an interval ends between the middle of this column and that of the next.
fn is_last_of_interval(x: u16, area: Rect, series: &Series, view: &Range<f64>) -> bool {
    let middle = |x: u16| {
        let column = column(x, area, view);
        f64::midpoint(column.start, column.end)
    };
    let (here, next) = (middle(x), middle(x.saturating_add(1)));
    series.intervals.iter().any(|one| one.span.1 > here && one.span.1 <= next)
}

/// The seconds of a column.
fn column(x: u16, area: Rect, view: &Range<f64>) -> Range<f64> {
    let wide = (view.end - view.start) / f64::from(area.width.max(1));
    let begin = view.start + f64::from(x) * wide;
    begin..begin + wide
}

/// A legend, and the values over time below it.
fn chart(look: Look, buffer: &mut Buffer, area: Rect, series: &Series, view: &Range<f64>) {
    let mark = |label: usize| if look.ascii { ASCII[label % 6] } else { MARKS[label % 6] };
    let of = |x: u16, label: usize| mean(&series.intervals, label, &column(x, area, view));
    let labels = 0..series.labels.len();
    let most = match series.is_share {
        true => 1.0,
        false => (0..area.width).filter_map(|x| of(x, 0)).fold(0.0, f64::max),
    };
    let legend = labels.clone().flat_map(|label| {
        let name = match series.is_share {
            true => format!(" {}  ", series.labels[label]),
            false => format!(" {}, up to {}", series.heading(), format::number(most)),
        };
        [look.span(mark(label).to_string(), TONES[label % 6]), Span::raw(name)]
    });
    buffer.set_line(area.x, area.y, &Line::from(legend.collect::<Vec<_>>()), area.width);
    let rows = area.height - 1;
    // Few intervals are a bar each.
    let are_apart = seen(series, view) < FEW;
    for x in 0..area.width {
        if are_apart && x + 1 < area.width && is_last_of_interval(x, area, series, view) {
            continue;
        }
        let values: Vec<Option<f64>> = labels.clone().map(|label| of(x, label)).collect();
        for row in 0..rows {
            // The middle of the cell, from below.
            let height = (f64::from(row) + 0.5) / f64::from(rows.max(1)) * most;
            let mut sum = 0.0;
            let found = values.iter().position(|value| {
                sum += value.unwrap_or(0.0).max(0.0);
                sum > height
            });
            if let (Some(label), true) = (found, most > 0.0) {
                let (x, y) = (area.x + x, area.bottom() - 1 - row);
                buffer.set_string(x, y, mark(label).to_string(), look.style(TONES[label % 6]));
            }
        }
    }
}

/// The phase of each column, by the last digit of its number; the one at the cursor reversed.
fn marks(state: &State, buffer: &mut Buffer, area: Rect, view: &Range<f64>) {
    let phases = &state.intervals.phases;
    for x in 0..area.width {
        let column = column(x, area, view);
        let middle = f64::midpoint(column.start, column.end);
        let found = phases.partition_point(|phase| phase.to <= middle);
        if found < phases.len() {
            let style = match found == state.list().at {
                true => Style::default().add_modifier(Modifier::REVERSED),
                false => state.look.style(Tone::Dim),
            };
            buffer.set_string(area.x + x, area.y, ((found + 1) % 10).to_string(), style);
        }
    }
}

/// A phase: when, and its means.
fn line(look: Look, row: usize, phase: &Phase) -> Line<'static> {
    let value = |of: &report::documents::report_parts::PhaseValue| match (of.value, of.is_share) {
        (Some(value), true) => format!("{} {:.1} %", of.label, 100.0 * value),
        (Some(value), false) => format!("{} {}", of.label, format::number(value)),
        (None, _) => format!("{} not measured", of.label),
    };
    // The largest shares first: a narrow screen cuts the others off.
    let mut sorted: Vec<_> = phase.values.iter().collect();
    if sorted.iter().all(|of| of.is_share) {
        sorted.sort_by(|a, b| b.value.partial_cmp(&a.value).unwrap_or(Ordering::Equal));
    }
    let values: Vec<String> = sorted.into_iter().map(value).collect();
    let (from, to) = (phase.from, phase.to);
    let text = format!("phase {:<2} {from:.2} s to {to:.2} s  {}", row + 1, values.join("  "));
    Line::from(look.prose(&text).into_owned())
}
