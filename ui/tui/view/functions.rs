//! The functions with samples, one per row, and their columns.

use super::put::{self, Layout, heat, put_prose, put_rows};
use super::{headline, names};
use crate::tui::look::{Tone, fit, fit_middle, fit_number, fit_right};
use crate::tui::state::{InPlace, State};
use profile::hot::{HotFunction, Summary};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use report::format;

/// Draws the screen.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    let area = layout.list;
    texts(state, buffer, layout);
    let hot = match state.functions.data.or_text("reading samples and symbols …") {
        Ok(hot) => hot,
        Err(InPlace(why)) => return put_prose(buffer, area, state.look, why),
    };
    titles(state, hot, buffer, layout.head);
    if state.functions.rows.is_empty() {
        let why = match hot.functions.is_empty() {
            true => format!("No function has samples. {}", hot.notes.join(". ")),
            false => "no function matches the filter".to_owned(),
        };
        return put_prose(buffer, area, state.look, &why);
    }
    rows(state, hot, buffer, area);
}

fn texts(state: &State, buffer: &mut Buffer, layout: &Layout) {
    let offer = headline::estimate_job(state).unwrap_or_default();
    let (sentence, about) = (headline::headline(state), headline::about_functions(state));
    let texts = [(&*sentence, Tone::Bold), (&*offer, Tone::Warm), (&*about, Tone::Dim)];
    put::put_texts(state.look, buffer, layout, texts);
}

fn titles(state: &State, hot: &Summary, buffer: &mut Buffer, area: Rect) {
    if area.height >= 1 {
        let columns = Columns::of(usize::from(area.width), hot, state.loads().is_some());
        let line = Line::from(state.look.span(columns.titles(state), Tone::Bold));
        buffer.set_line(area.x, area.bottom() - 1, &line, area.width);
    }
}

fn rows(state: &State, hot: &Summary, buffer: &mut Buffer, area: Rect) {
    let functions = &state.functions;
    let columns = Columns::of(usize::from(area.width), hot, state.loads().is_some());
    put_rows(buffer, area, &functions.list, |row| {
        let event = dominant(hot, *functions.rows.get(row)?);
        Some(line(state, functions.row(row)?, &event, &columns))
    });
}

fn line(state: &State, f: &HotFunction, event: &str, columns: &Columns) -> Line<'static> {
    let look = state.look;
    let tone = heat(f.share);
    let value = match state.functions.samples {
        true => fit_number(&format::count(f.samples as f64), f.samples as f64, 8),
        false => fit_right(&format!("{:.2} %", 100.0 * f.share), 8),
    };
    let mut spans = vec![look.span(value + " ", tone)];
    if columns.bar > 0 {
        spans.push(look.span(look.bar(f.share, columns.bar) + " ", tone));
    }
    spans.push(Span::raw(fit_middle(names::function(f), columns.name)));
    if columns.event > 0 {
        spans.push(look.span(format!(" {}", fit(event, columns.event)), Tone::Plain));
    }
    if columns.loads > 0 {
        let text = format!(" {}", fit(&loads(state, f), columns.loads));
        spans.push(look.span(text, Tone::Plain));
    }
    if columns.module > 0 {
        spans.push(look.span(format!(" {}", fit(&f.module, columns.module)), Tone::Plain));
    }
    if columns.source > 0 {
        spans.push(look.span(format!(" {}", fit(&names::source(f), columns.source)), Tone::Dim));
    }
    Line::from(spans)
}

/// Share of the recorded loads, and their mean latency.
fn loads(state: &State, f: &HotFunction) -> String {
    let found = state.loads().and_then(|loads| loads.between(f, f.start, f.end));
    let Some(found) = found else { return String::new() };
    let mean = found.mean().map_or("-".to_owned(), |mean| format!("{mean:.0}"));
    format!("{:>6.1} %{mean:>8}", 100.0 * found.share)
}

/// `80 % loads:pp`: the event of which the function at `index` has its largest share.
fn dominant(hot: &Summary, index: usize) -> String {
    let Some(&Some((event, share))) = hot.dominant.get(index) else { return String::new() };
    let name = hot.events.get(event).map_or("?", String::as_str);
    format!("{:>3.0} % {name}", 100.0 * share)
}

/// Title above the loads of functions.
const LOADS: &str = "of loads  cycles";

/// Widths of the columns; 0: not shown.
pub struct Columns {
    pub bar: usize,
    /// The event that dominates a function, if several were sampled.
    pub event: usize,
    pub name: usize,
    /// Share of the recorded loads and their mean latency, if loads were sampled.
    pub loads: usize,
    pub module: usize,
    pub source: usize,
}

impl Columns {
    /// The widths on a screen of `columns` columns.
    pub fn of(columns: usize, hot: &Summary, has_loads: bool) -> Self {
        let (bar, module, source) = match columns {
            110.. => (12, 20, 26),
            80.. => (8, 16, 18),
            60.. => (6, 14, 0),
            36.. => (0, 10, 0),
            _ => (0, 0, 0),
        };
        let gap = |n: usize| if n > 0 { n + 1 } else { 0 };
        let event = match columns {
            _ if hot.events.len() < 2 => 0,
            100.. => 22,
            60.. => 16,
            _ => 0,
        };
        let loads = if has_loads && columns >= 60 { LOADS.len() } else { 0 };
        let others = [bar, event, loads, module, source].into_iter().map(gap).sum::<usize>();
        let name = columns.saturating_sub(9 + others);
        Self { bar, event, name, loads, module, source }
    }

    /// The titles above them; an arrow marks the one that the rows are sorted by.
    pub fn titles(&self, state: &State) -> String {
        let functions = &state.functions;
        let first = if functions.samples { "samples" } else { "share" };
        let order = |name: &str, label: &str| {
            let arrow = if functions.invert { "↑" } else { "↓" };
            if functions.order.label() == label {
                format!("{name}{arrow}")
            } else {
                name.to_owned()
            }
        };
        let mut text = fit_right(&order(first, "share"), 8) + " ";
        if self.bar > 0 {
            text += &" ".repeat(self.bar + 1);
        }
        text += &fit(&order("function", "name"), self.name);
        let others = [
            (self.event, "top event".to_owned()),
            (self.loads, LOADS.to_owned()),
            (self.module, order("module", "module")),
            (self.source, order("source", "source line")),
        ];
        for (width, title) in others.into_iter().filter(|(width, _)| *width > 0) {
            text.push(' ');
            text += &fit(&title, width);
        }
        text
    }
}
