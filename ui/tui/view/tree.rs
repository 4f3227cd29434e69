//! The rows of the tree; above them the processor, the source of the values, and metrics such as IPC.

use super::headline;
use super::put::{self, Layout, put_prose, put_rows};
use crate::tui::look::{Tone, fit, fit_right, width};
use crate::tui::state::{Progress, State, TreeRow};
use ratatui::buffer::Buffer;
use ratatui::text::{Line, Span};
use report::documents::{NodeRow, Report, Source, series};
use report::format;
use report::render::report::{SHORT_INFOS, short_label};

/// Widest bar.
const BAR: usize = 20;

/// Draws the screen, except for the details.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    draw_head(state, buffer, layout);
    let area = layout.list;
    let tree = &state.tree;
    if tree.rows.is_empty() {
        return put_prose(buffer, area, state.look, &no_rows(state));
    }
    let columns = Columns::of(state, usize::from(area.width));
    put_rows(buffer, area, &tree.list, |row| {
        Some(line(state, tree.node(row)?, tree.rows.get(row)?, &columns))
    });
}

/// Why there are no rows.
fn no_rows(state: &State) -> String {
    match &state.tree.progress {
        Progress::Failed(why) => why.clone(),
        Progress::Loading => "reading …".into(),
        Progress::Measuring(_) if state.tree.report.is_none() => {
            "measuring the first interval …".into()
        }
        _ if !state.tree.filter.is_empty() => "no node matches the filter".into(),
        _ => {
            let notes = state.tree.report.as_ref().map(|r| r.notes.join(". "));
            format!("There is no tree. {}", notes.unwrap_or_default())
        }
    }
}

/// Widths of the columns.
struct Columns {
    all: usize,
    label: usize,
    bar: usize,
    error: bool,
}

impl Columns {
    fn of(state: &State, columns: usize) -> Self {
        let tree = &state.tree;
        let long = |(row, shown): (usize, &TreeRow)| {
            let label = tree.node(row).map_or(0, |n| width(&n.label));
            2 * shown.depth + 2 + label
        };
        let label = tree.rows.iter().enumerate().map(long).max().unwrap_or(0);
        // Flag and value take precedence, then ±, then the bar, then remarks.
        let error = columns >= 34;
        let value = 10 + if error { 7 } else { 0 };
        let label = label.min(columns.saturating_sub(value).max(4));
        let left = columns.saturating_sub(2 + label + value + 14);
        Self { all: columns, label, bar: left.min(BAR), error }
    }
}

fn line(state: &State, node: &NodeRow, row: &TreeRow, columns: &Columns) -> Line<'static> {
    let look = state.look;
    let tone = match (node.bottleneck, node.flagged) {
        (true, _) => Tone::Hot,
        (_, true) => Tone::Bold,
        _ if node.value.is_none() => Tone::Dim,
        _ => Tone::Plain,
    };
    let mut spans = vec![look.span(label(node, row, columns), tone)];
    let Some(value) = node.value else {
        let why = node.missing.as_deref().unwrap_or("not measured");
        let short = why.split_once(':').map_or(why, |(head, _)| head);
        spans.push(look.span(short.to_owned(), Tone::Dim));
        return Line::from(spans);
    };
    if columns.bar > 0 {
        spans.push(look.span(look.bar(value, columns.bar) + " ", tone));
    }
    spans.push(look.span(fit_right(&format!("{:.1} %", 100.0 * value), 7), tone));
    if columns.error {
        let error = node.error.map(|e| format!(" {}{:.1}", look.plus_minus(), 100.0 * e));
        spans.push(look.span(fit(&error.unwrap_or_default(), 7), tone));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    let text = remarks(node, columns.all.saturating_sub(used + 1));
    spans.push(look.span(format!(" {text}"), tone));
    Line::from(spans)
}

/// Flag, indentation and label.
fn label(node: &NodeRow, row: &TreeRow, columns: &Columns) -> String {
    let fold = match row.open {
        Some(true) => "▾ ",
        Some(false) => "▸ ",
        None => "  ",
    };
    let indent = " ".repeat(2 * row.depth);
    let label = fit(&format!("{indent}{fold}{}", node.label), columns.label);
    let flag = if node.flagged { "● " } else { "  " };
    format!("{flag}{label} ")
}

/// Remarks that have room: the first are worth most, and the very first may be its mark alone.
fn remarks(node: &NodeRow, room: usize) -> String {
    let mut all: Vec<String> = Vec::new();
    if node.bottleneck {
        all.push("◀ bottleneck".into());
    }
    if node.mismeasured {
        all.push("? mismeasured".into());
    }
    if let Some(share) = node.running.filter(|s| *s < 0.995) {
        all.push(format!("running {:.0} %", 100.0 * share));
    }
    if node.split {
        all.push("in several groups".into());
    }
    if node.estimate.is_some() {
        all.push("estimate".into());
    }
    let mut text = all.join("  ");
    while width(&text) > room && all.len() > 1 {
        all.pop();
        text = all.join("  ");
    }
    match (width(&text) > room, text.chars().next()) {
        (false, _) => text,
        (true, Some(mark)) if !mark.is_alphabetic() => mark.to_string(),
        _ => String::new(),
    }
}

/// Draws them; on a small screen only the metrics.
pub fn draw_head(state: &State, buffer: &mut Buffer, layout: &Layout) {
    let Some(report) = &state.tree.report else { return };
    let (look, area) = (state.look, layout.head);
    let (sentence, about) = (headline::headline(state), subject(state, report));
    let texts = [(&*sentence, Tone::Bold), ("", Tone::Plain), (&*about, Tone::Dim)];
    put::put_texts(look, buffer, layout, texts);
    if area.height >= 1 {
        let text = fit(&look.prose(&metrics(report)), usize::from(area.width));
        buffer.set_line(area.x, area.bottom() - 1, &Line::from(text), area.width);
    }
}

fn subject(state: &State, report: &Report) -> String {
    let mut parts = vec![match report.uarch.as_str() {
        "" => "no table for this processor".to_owned(),
        name => format!("{name}: {}", report.title),
    }];
    parts.push(report.source.label().to_owned());
    parts.extend(report.duration.map(format::seconds));
    parts.extend(report.interval.map(|(a, b)| format!("{a:.1} s to {b:.1} s")));
    parts.extend(state.tree.part_name());
    parts.join(" · ")
}

/// IPC and similar metrics; without a PMU, software counts.
fn metrics(report: &Report) -> String {
    let known = SHORT_INFOS.iter().filter_map(|id| report.info.iter().find(|i| i.id == *id));
    let known: Vec<String> = known
        .filter_map(|i| Some(format!("{} {}", short_label(i), format::number(i.value?))))
        .collect();
    if !known.is_empty() {
        return known.join("   ");
    }
    let software = software(report);
    match (report.source, software.is_empty()) {
        (_, false) => software.join("   "),
        (Source::NoPmu, true) => "no core PMU: nothing can be counted".into(),
        _ => String::new(),
    }
}

/// Software counts, the most useful first.
fn software(report: &Report) -> Vec<String> {
    const FIRST: [&str; 4] = ["cpus_used", "task_clock_ms", "page_faults", "context_switches"];
    let known = |name: &&str| report.software.contains_key(*name);
    let first = FIRST.iter().copied().filter(known);
    let others = report.software.keys().map(String::as_str).filter(|n| !FIRST.contains(n));
    let text = |name: &str| {
        let value = report.software.get(name).copied().flatten()?;
        let value = match series::is_software_time(name) {
            true => format::seconds(value / 1e3),
            false => format::number(value),
        };
        Some(format!("{} {value}", series::software_label(name)))
    };
    first.chain(others).filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_screen_shortens_the_label_and_keeps_the_value() {
        let state = crate::tui::tests::example::measured();
        for columns in 20..60 {
            let shown = Columns::of(&state, columns);
            let node = state.tree.node(0).expect("a node");
            let text = line(&state, node, &state.tree.rows[0], &shown);
            let text = text.to_string();
            let (before, _) = text.split_once('%').expect("a value");
            assert!(width(before) < columns, "{columns}: {text}");
            let mut partly = node.clone();
            (partly.running, partly.flagged, partly.bottleneck) = (Some(0.25), false, false);
            let text = line(&state, &partly, &state.tree.rows[0], &shown).to_string();
            assert!(width(text.trim_end()) <= columns, "{columns}: {text}");
            assert_eq!(
                text.contains("running"),
                text.contains("running 25 %"),
                "{columns}: {text}"
            );
        }
    }
}
