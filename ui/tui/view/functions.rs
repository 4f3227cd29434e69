//! The functions with samples, one a row.

use super::Layout;
use super::ink::{Tone, fit, fit_right, heat, put, put_row, wrap};
use crate::tui::state::{Load, Order, State, WITH_LINES};
use engine::render::format;
use profile::hot::{HotFunction, Skid, Summary};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Draws the screen.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    let functions = &state.functions;
    let area = layout.list;
    let why = match &functions.data {
        Load::Ready(hot) => {
            head(state, hot, buffer, layout.head);
            (functions.rows.is_empty()).then(|| match hot.functions.is_empty() {
                true => format!("No function has samples. {}", hot.notes.join(". ")),
                false => "no function matches the filter".to_owned(),
            })
        }
        Load::Loading => Some("reading samples and symbols …".to_owned()),
        Load::Missing(why) => Some(why.clone()),
    };
    if let Some(why) = why {
        let lines = wrap(&state.look.prose(&why), usize::from(area.width));
        let lines: Vec<Line> = lines.into_iter().map(Line::from).collect();
        return put(buffer, area, &lines, 0);
    }
    let Some(hot) = functions.data.ready() else { return };
    let columns = Columns::of(usize::from(area.width), hot);
    for (y, row) in functions.list.shown(usize::from(area.height)).enumerate() {
        if let Some(function) = functions.row(row) {
            let event = functions.rows.get(row).map(|i| dominant(hot, *i)).unwrap_or_default();
            let line = line(state, function, &event, &columns);
            put_row(buffer, area, y, &line, row == functions.list.at);
        }
    }
}

/// How well samples' addresses are known.
fn skid(skid: Skid) -> &'static str {
    match skid {
        Skid::None => "addresses exact",
        Skid::Some => "addresses may be a few instructions late",
        Skid::Timer => "timer: addresses lag, often behind a slow instruction",
    }
}

/// What must be known of the numbers.
pub fn info(state: &State) -> String {
    let functions = &state.functions;
    let Some(hot) = functions.data.ready() else { return String::new() };
    let mut parts =
        vec![hot.event.clone(), format!("{} samples", format::count(hot.samples as f64))];
    if hot.events.len() > 1 {
        let number = functions.which.event.unwrap_or(0) + 1;
        parts[0] += &format!(" (event {number} of {})", hot.events.len());
    }
    if !functions.which.threads.is_empty() {
        parts.push(format!("thread {} alone", functions.which.threads.join(", ")));
    }
    if hot.lost > 0 {
        parts.push(format!("{} lost", format::count(hot.lost as f64)));
    }
    parts.push(format!("{} of {} functions", functions.rows.len(), hot.functions.len()));
    if functions.order == Order::Line && hot.functions.len() > WITH_LINES {
        parts.push(format!("source lines of the {WITH_LINES} hottest alone"));
    }
    if let Some(module) = &functions.module {
        parts.push(format!("{module} alone"));
    }
    parts.push(skid(hot.skid).to_owned());
    parts.extend(hot.notes.iter().cloned());
    parts.join(" · ")
}

fn head(state: &State, hot: &Summary, buffer: &mut Buffer, area: Rect) {
    let look = state.look;
    super::ink::put_wrapped(
        buffer,
        Rect { height: area.height.saturating_sub(1), ..area },
        &look.prose(&info(state)),
        look.style(Tone::Dim),
    );
    if area.height >= 1 {
        let columns = Columns::of(usize::from(area.width), hot);
        let line = Line::from(look.span(titles(state, &columns), Tone::Bold));
        buffer.set_line(area.x, area.bottom() - 1, &line, area.width);
    }
}

fn titles(state: &State, columns: &Columns) -> String {
    let functions = &state.functions;
    let first = if functions.samples { "samples" } else { "share" };
    let order = |name: &str, label: &str| {
        let arrow = if functions.invert { "↑" } else { "↓" };
        if functions.order.label() == label { format!("{name}{arrow}") } else { name.to_owned() }
    };
    let mut text = fit_right(&order(first, "share"), 8) + " ";
    if columns.bar > 0 {
        text += &" ".repeat(columns.bar + 1);
    }
    text += &fit(&order("function", "name"), columns.name);
    let columns = [
        (columns.event, "most of".to_owned()),
        (columns.module, order("module", "module")),
        (columns.source, order("source", "source line")),
    ];
    for (width, title) in columns.into_iter().filter(|(width, _)| *width > 0) {
        text.push(' ');
        text += &fit(&title, width);
    }
    text
}

/// How wide the columns are; 0: not shown.
struct Columns {
    bar: usize,
    /// The event that a function has most of; of several events alone.
    event: usize,
    name: usize,
    module: usize,
    source: usize,
}

impl Columns {
    fn of(columns: usize, hot: &Summary) -> Self {
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
        let others = [bar, event, module, source].into_iter().map(gap).sum::<usize>();
        let name = columns.saturating_sub(9 + others);
        Self { bar, event, name, module, source }
    }
}

/// Without parameters: there is little room. Copies and exports have the whole name.
pub(super) fn shown(f: &HotFunction) -> &str {
    if f.short.is_empty() { &f.name } else { &f.short }
}

fn line(state: &State, f: &HotFunction, event: &str, columns: &Columns) -> Line<'static> {
    let look = state.look;
    let tone = heat(f.share);
    let value = match state.functions.samples {
        true => format::count(f.samples as f64),
        false => format!("{:.2} %", 100.0 * f.share),
    };
    let mut spans = vec![look.span(fit_right(&value, 8) + " ", tone)];
    if columns.bar > 0 {
        spans.push(look.span(look.bar(f.share, columns.bar) + " ", tone));
    }
    spans.push(Span::raw(fit(shown(f), columns.name)));
    if columns.event > 0 {
        spans.push(look.span(format!(" {}", fit(event, columns.event)), Tone::Plain));
    }
    if columns.module > 0 {
        spans.push(look.span(format!(" {}", fit(&f.module, columns.module)), Tone::Plain));
    }
    if columns.source > 0 {
        spans.push(look.span(format!(" {}", fit(&source(f), columns.source)), Tone::Dim));
    }
    Line::from(spans)
}

/// `loads:pp 80 %`: the event of which the function at `index` has the largest share.
fn dominant(hot: &Summary, index: usize) -> String {
    let Some(&Some((event, share))) = hot.dominant.get(index) else { return String::new() };
    let name = hot.events.get(event).map_or("?", String::as_str);
    format!("{:>3.0} % {name}", 100.0 * share)
}

/// `matmul.c:17`, or why the code cannot be shown.
fn source(f: &HotFunction) -> String {
    let name = |file: &str| file.rsplit('/').next().unwrap_or(file).to_owned();
    match (&f.file, f.line, &f.gap) {
        (Some(file), Some(line), _) => format!("{}:{line}", name(file)),
        (Some(file), None, _) => name(file),
        (None, _, Some(gap)) => gap.clone(),
        (None, _, None) => "-".to_owned(),
    }
}
