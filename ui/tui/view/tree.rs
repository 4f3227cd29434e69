//! The tree's rows and the lines above them.

use super::Layout;
use super::ink::{Tone, fit, fit_right, put_row, width};
use crate::tui::state::{Progress, State, TreeRow, part_name};
use engine::documents::{NodeRow, Report, Source};
use engine::render::format;
use engine::render::report::text::{SHORT_INFOS, short_label};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Widest bar.
const BAR: usize = 20;

/// Draws the screen, details aside.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    head(state, buffer, layout.head);
    let area = layout.list;
    let tree = &state.tree;
    if tree.rows.is_empty() {
        let text = nothing(state);
        let lines = super::ink::wrap(&state.look.prose(&text), usize::from(area.width));
        let lines: Vec<Line> = lines.into_iter().map(Line::from).collect();
        super::ink::put(buffer, area, &lines, 0);
        return;
    }
    let columns = Columns::of(state, usize::from(area.width));
    for (y, row) in tree.list.shown(usize::from(area.height)).enumerate() {
        if let (Some(node), Some(shown)) = (tree.node(row), tree.rows.get(row)) {
            let line = line(state, node, shown, &columns);
            put_row(buffer, area, y, &line, row == tree.list.at);
        }
    }
}

/// Why there are no rows.
fn nothing(state: &State) -> String {
    match &state.tree.progress {
        Progress::Failed(why) => why.clone(),
        Progress::Loading => "reading …".into(),
        Progress::Measuring(_) if state.tree.report.is_none() => {
            "measuring; the first interval is not over yet".into()
        }
        _ if !state.tree.filter.is_empty() => "no node matches the filter".into(),
        _ => {
            let notes = state.tree.report.as_ref().map(|r| r.notes.join(". "));
            format!("There is no tree here. {}", notes.unwrap_or_default())
        }
    }
}

/// What was measured how, and the numbers beside the tree.
fn head(state: &State, buffer: &mut Buffer, area: Rect) {
    let Some(report) = &state.tree.report else { return };
    let look = state.look;
    let mut first = vec![match report.uarch.as_str() {
        "" => "no table for this processor".to_owned(),
        name => format!("{name}: {}", report.title),
    }];
    first.push(report.source.label().to_owned());
    first.extend(report.duration.map(format::seconds));
    first.extend(report.interval.map(|(a, b)| format!("{a:.1} s to {b:.1} s")));
    first.extend(part_name(&state.tree));
    let first = look.span(look.prose(&first.join(" · ")).into_owned(), Tone::Dim);
    let second = look.span(look.prose(&infos(report)).into_owned(), Tone::Plain);
    let columns = usize::from(area.width);
    if area.height >= 2 {
        buffer.set_line(area.x, area.y, &Line::from(first), area.width);
    }
    if area.height >= 1 {
        let text = fit(&second.content, columns);
        buffer.set_line(area.x, area.bottom() - 1, &Line::from(text), area.width);
    }
}

/// IPC and its like; where there is no PMU, what there is instead.
fn infos(report: &Report) -> String {
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
        (Source::NoPmu, true) => "no core PMU: nothing is counted here".into(),
        _ => String::new(),
    }
}

/// Software counts in short, those that tell most first.
fn software(report: &Report) -> Vec<String> {
    const FIRST: [&str; 4] = ["cpus_used", "task_clock_ms", "page_faults", "context_switches"];
    let known = |name: &&str| report.software.contains_key(*name);
    let first = FIRST.iter().copied().filter(known);
    let others = report.software.keys().map(String::as_str).filter(|n| !FIRST.contains(n));
    let text = |name: &str| {
        let value = report.software.get(name).copied().flatten()?;
        let label = name.trim_end_matches("_ms").replace('_', " ");
        Some(match name.strip_suffix("_ms") {
            Some(_) => format!("{label} {}", format::seconds(value / 1e3)),
            None => format!("{label} {}", format::number(value)),
        })
    };
    first.chain(others).filter_map(text).collect()
}

/// How wide the columns are.
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
        // Flag and value come first, then ±, then the bar, then remarks.
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
    let fold = match row.open {
        Some(true) => "▾ ",
        Some(false) => "▸ ",
        None => "  ",
    };
    let indent = " ".repeat(2 * row.depth);
    let label = fit(&format!("{indent}{fold}{}", node.label), columns.label);
    let flag = if node.flagged { "● " } else { "  " };
    let mut spans = vec![look.span(format!("{flag}{label} "), tone)];
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
    let text = remarks(node);
    // Half a word says less than its mark.
    let text = match columns.all.saturating_sub(used + 1) {
        room if super::ink::width(&text) > room && node.bottleneck => "◀".to_owned(),
        _ => text,
    };
    spans.push(look.span(format!(" {text}"), tone));
    Line::from(spans)
}

fn remarks(node: &NodeRow) -> String {
    let mut all: Vec<String> = Vec::new();
    if node.bottleneck {
        all.push("◀ bottleneck".into());
    }
    if node.mismeasured {
        all.push("? mismeasured".into());
    }
    if let Some(share) = node.running.filter(|s| *s < 0.995) {
        all.push(format!("ran {:.0} %", 100.0 * share));
    }
    if node.split {
        all.push("split over groups".into());
    }
    if node.estimate.is_some() {
        all.push("estimate".into());
    }
    all.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_gives_way_before_the_value() {
        let state = crate::tui::tests::made_up::measured();
        for columns in 20..60 {
            let shown = Columns::of(&state, columns);
            let node = state.tree.node(0).expect("a node");
            let text = line(&state, node, &state.tree.rows[0], &shown);
            let text = text.to_string();
            let (before, _) = text.split_once('%').expect("a value");
            assert!(width(before) < columns, "{columns}: {text}");
        }
    }
}
