//! The blocks of a function with their instructions: control flow, shares, source.

use super::Layout;
use super::ink::{Tone, fit, fit_right, heat, put, put_row, put_wrapped, wrap};
use crate::tui::state::{BlockRow, Blocks, Load, State};
use engine::render::format;
use profile::hot::{AnnotatedBlock, AnnotatedLine};
use ratatui::buffer::Buffer;
use ratatui::text::{Line, Span};

/// Draws the screen.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    let blocks = &state.blocks;
    let area = layout.list;
    let why = match &blocks.data {
        Load::Ready(annotated) => {
            let (text, style) = (info(state), state.look.style(Tone::Dim));
            put_wrapped(buffer, layout.head, &state.look.prose(&text), style);
            blocks.rows.is_empty().then(|| match annotated.blocks.is_empty() {
                true => format!("There is no code to show. {}", annotated.notes.join(". ")),
                false => "no instruction matches the filter".to_owned(),
            })
        }
        Load::Loading => Some("reading the code …".to_owned()),
        Load::Missing(why) => Some(format!("The code cannot be shown: {why}")),
    };
    if let Some(why) = why {
        let lines = wrap(&state.look.prose(&why), usize::from(area.width));
        let lines: Vec<Line> = lines.into_iter().map(Line::from).collect();
        return put(buffer, area, &lines, 0);
    }
    let columns = usize::from(area.width);
    for (y, row) in blocks.list.shown(usize::from(area.height)).enumerate() {
        let Some(kind) = blocks.rows.get(row) else { continue };
        let Some(block) = blocks.block(row) else { continue };
        let line = match *kind {
            BlockRow::Block(_) => block_line(state, block, row, columns),
            BlockRow::Source(_, i) => source_line(state, block, (row, i), columns),
            BlockRow::Line(_, i) => match block.lines.get(i) {
                Some(line) => instruction(state, line, row, columns),
                None => continue,
            },
        };
        put_row(buffer, area, y, &line, row == blocks.list.at);
    }
}

/// What must be known of the function and its numbers.
pub fn info(state: &State) -> String {
    let Some(annotated) = state.blocks.data.ready() else { return String::new() };
    let f = &annotated.function;
    let mut parts = vec![
        f.module.clone(),
        format!("{:.2} % of all samples", 100.0 * f.share),
        format!("{} samples", format::count(f.samples as f64)),
        format!("{} blocks", annotated.blocks.len()),
    ];
    if let (Some(file), Some(line)) = (&f.file, f.line) {
        parts.push(format!("{file}:{line}"));
    }
    // That samples are late is among the profile's own notes.
    parts.extend(annotated.notes.iter().cloned());
    parts.join(" · ")
}

/// Samples or share in 8 columns; nothing where there is none.
fn value(state: &State, samples: u64, share: f64) -> String {
    let text = match (samples, state.blocks.samples) {
        (0, _) => String::new(),
        (n, true) => format::count(n as f64),
        (_, false) => format!("{:.2} %", 100.0 * share),
    };
    fit_right(&text, 8)
}

/// Wide enough for the widest address of the function.
fn address(state: &State, at: u64) -> String {
    let Some(annotated) = state.blocks.data.ready() else { return String::new() };
    let f = &annotated.function;
    let digits = |n: u64| format!("{n:x}").len();
    if state.blocks.offsets {
        let text = format!("+{:x}", at.wrapping_sub(f.start));
        return fit_right(&text, digits(f.end.wrapping_sub(f.start)) + 1);
    }
    fit_right(&format!("{at:x}"), digits(f.end))
}

/// The loops beside a row, outermost first: from the first row of the head `┌▶` down to the jump back
/// `└─`; of a loop whose head lies behind the jump, from there down to it.
fn gutter(blocks: &Blocks, row: usize, columns: usize) -> String {
    let deepest = blocks.loops.iter().map(|l| l.column + 1).max().unwrap_or(0);
    let width = deepest.min(columns / 12);
    let mut cells = vec![' '; width];
    let Some(block) = blocks.block_index(row) else { return cells.into_iter().collect() };
    let first = row == 0 || blocks.block_index(row - 1) != Some(block);
    let last = blocks.block_index(row + 1) != Some(block);
    let mut edge = ' ';
    for one in blocks.loops.iter().filter(|l| (l.from..=l.to).contains(&block)) {
        let (from, to) = (block == one.from, block == one.to);
        let (top, bottom) = match one.head_first {
            true => (first && from, last && to),
            false => (last && from, first && to),
        };
        if !one.head_first && ((from && !last) || (to && !first)) {
            continue;
        }
        let Some(cell) = cells.get_mut(one.column) else { continue };
        *cell = match (top, bottom) {
            (true, _) => '┌',
            (_, true) => '└',
            _ => '│',
        };
        if top || bottom {
            // From the corner to the row, across the loops inside.
            let arrow = if top == one.head_first { '▶' } else { '─' };
            cells.iter_mut().skip(one.column + 1).filter(|c| **c == ' ').for_each(|c| *c = '─');
            edge = if top && bottom { '▶' } else { arrow };
        }
    }
    if width == 0 {
        return String::new();
    }
    cells.push(edge);
    cells.into_iter().collect()
}

fn block_line(state: &State, block: &AnnotatedBlock, row: usize, columns: usize) -> Line<'static> {
    let look = state.look;
    let b = &block.block;
    let open = if state.blocks.closed.contains(&b.start) { "▸" } else { "▾" };
    let mut text =
        format!("{}{open} {}", gutter(&state.blocks, row, columns), address(state, b.start));
    if block.is_head {
        text += " ↺ loop";
    }
    if b.loop_depth > 0 {
        text += &format!(" depth {}", b.loop_depth);
    }
    if block.is_head && columns >= 70 {
        // Samples do not tell how often a loop goes round.
        text += ", trips not measured";
    }
    for edge in &block.edges {
        let arrow = match Some(*edge) == block.back_to {
            true if *edge <= b.start => "↑",
            true => "↓",
            false => "→",
        };
        text += &format!(" {arrow}{}", address(state, *edge).trim_start());
    }
    if block.unresolved {
        text += " ? edges missing";
    }
    let tone = heat(b.share);
    let bar = if columns >= 70 { 8 } else { 0 };
    let mut spans = vec![look.span(value(state, b.samples, b.share) + " ", tone)];
    if bar > 0 {
        spans.push(look.span(look.bar(b.share, bar) + " ", tone));
    }
    spans.push(look.span(fit(&text, columns.saturating_sub(9 + bar)), Tone::Bold));
    Line::from(spans)
}

fn instruction(state: &State, line: &AnnotatedLine, row: usize, columns: usize) -> Line<'static> {
    let look = state.look;
    let tone = heat(line.share);
    // Under the block's head, which has a bar in these columns.
    let bar = if columns >= 70 { look.bar(line.share, 8) + " " } else { String::new() };
    let used = 9 + super::ink::width(&bar);
    let text = format!(
        "{}  {}  {}",
        gutter(&state.blocks, row, columns),
        address(state, line.address),
        line.text
    );
    let text = fit(&text, columns.saturating_sub(used));
    let text_tone = if line.samples == 0 { Tone::Plain } else { tone };
    Line::from(vec![
        look.span(value(state, line.samples, line.share) + " ", tone),
        look.span(bar, tone),
        look.span(text, if text_tone == Tone::Dim { Tone::Plain } else { text_tone }),
    ])
}

fn source_line(
    state: &State,
    block: &AnnotatedBlock,
    (row, i): (usize, usize),
    columns: usize,
) -> Line<'static> {
    let look = state.look;
    let Some((file, line)) = block.lines.get(i).and_then(|l| l.source.as_ref()) else {
        return Line::default();
    };
    let text = state.blocks.texts.get(&(file.clone(), *line));
    let text = text.map(|t| format!("  {}", t.trim())).unwrap_or_default();
    let name = file.rsplit('/').next().unwrap_or(file);
    let bar = if columns >= 70 { 9 } else { 0 };
    let text = format!("{}  {name}:{line}{text}", gutter(&state.blocks, row, columns));
    let text = fit(&look.prose(&text), columns.saturating_sub(9 + bar));
    Line::from(vec![Span::raw(" ".repeat(9 + bar)), look.span(text, Tone::Dim)])
}
