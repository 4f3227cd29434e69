//! The functions with samples, one per row.

use super::columns::Columns;
use super::layout::Layout;
use super::put::{heat, put_prose, put_row};
use super::{head, headline, info, names};
use crate::tui::look::{Tone, fit, fit_middle, fit_number, fit_right};
use crate::tui::state::{Load, State};
use profile::hot::{HotFunction, Summary};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use report::format;

/// Draws the screen.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    let area = layout.list;
    texts(state, buffer, layout);
    let hot = match &state.functions.data {
        Load::Ready(hot) => hot,
        Load::Loading => {
            return put_prose(buffer, area, state.look, "reading samples and symbols …");
        }
        Load::Missing(why) => return put_prose(buffer, area, state.look, why),
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
    let offer = info::estimate_job(state).unwrap_or_default();
    let (sentence, about) = (headline::headline(state), info::functions(state));
    let texts = [(&*sentence, Tone::Bold), (&*offer, Tone::Warm), (&*about, Tone::Dim)];
    head::put(state.look, buffer, layout, texts);
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
    for (y, row) in functions.list.shown(usize::from(area.height)).enumerate() {
        if let Some(function) = functions.row(row) {
            let event = functions.rows.get(row).map(|i| dominant(hot, *i)).unwrap_or_default();
            let line = line(state, function, &event, &columns);
            put_row(buffer, area, y, &line, row == functions.list.at);
        }
    }
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
