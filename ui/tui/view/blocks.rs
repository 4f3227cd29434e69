//! The blocks of a function with their instructions: control flow, loops drawn to their left, shares, source lines.

use super::put::{self, Layout, heat, put_prose, put_rows};
use super::{headline, names};
use crate::keymap::Command;
use crate::tui::look::{Tone, fit, fit_number, fit_right, width};
use crate::tui::state::{
    BlockCounts, BlockRow, Blocks, Each, Load, LoadSamples, Loads, Mispredicted, State,
};
use profile::hot::{AnnotatedBlock, AnnotatedLine, HotFunction};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use report::format;

/// Columns from which there are bars.
const WITH_BARS: usize = 70;

/// Draws the screen.
pub fn draw(state: &State, buffer: &mut Buffer, layout: &Layout) {
    let area = layout.list;
    let annotated = match &state.blocks.data {
        Load::Ready(annotated) => annotated,
        Load::Loading => return put_prose(buffer, area, state.look, "reading the code …"),
        Load::Missing(why) => {
            let text = format!("The code cannot be shown: {why}");
            return put_prose(buffer, area, state.look, &text);
        }
    };
    let (sentence, about) = (headline::headline(state), headline::about_blocks(state));
    let texts = [(&*sentence, Tone::Bold), ("", Tone::Plain), (&*about, Tone::Dim)];
    put::put_texts(state.look, buffer, layout, texts);
    titles(state, buffer, layout.head);
    if state.blocks.rows.is_empty() {
        let why = match annotated.blocks.is_empty() {
            // The line at the top has the reason.
            true => "There is no code to show.",
            false => "no instruction matches the filter",
        };
        return put_prose(buffer, area, state.look, why);
    }
    rows(state, buffer, area);
}

/// What the numbers are of, and what stands beside a block's address.
fn titles(state: &State, buffer: &mut Buffer, area: Rect) {
    if area.height == 0 {
        return;
    }
    let columns = usize::from(area.width);
    let bar = if columns >= WITH_BARS { 9 } else { 0 };
    let value = fit_right(if state.blocks.samples { "samples" } else { "of all" }, 8);
    let key = state.keys.key(Command::Help);
    let text = format!(
        "{value} {:bar$}block: ↺ loop, ↑ jump back, → other successors ({key} explains)",
        ""
    );
    let text = state.look.prose(&text).into_owned();
    let line = Line::from(state.look.span(fit(&text, columns), Tone::Dim));
    buffer.set_line(area.x, area.bottom() - 1, &line, area.width);
}

fn rows(state: &State, buffer: &mut Buffer, area: Rect) {
    let blocks = &state.blocks;
    let columns = usize::from(area.width);
    put_rows(buffer, area, &blocks.list, |row| {
        let (kind, block) = (blocks.rows.get(row)?, blocks.block(row)?);
        Some(match *kind {
            BlockRow::Block(_) => block_line(state, block, row, columns),
            BlockRow::Source(_, i) => source_line(state, block.lines.get(i), row, columns),
            BlockRow::Line(_, i) => instruction(state, block.lines.get(i)?, row, columns),
        })
    });
}

/// Samples or share in 8 columns; blank if there are none.
fn value(state: &State, samples: u64, share: f64) -> String {
    let text = match (samples, state.blocks.samples) {
        (0, _) => String::new(),
        (n, true) => return fit_number(&format::count(n as f64), n as f64, 8),
        (_, false) => format!("{:.2} %", 100.0 * share),
    };
    fit_right(&text, 8)
}

/// An address or offset, as wide as the widest of the function.
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

fn block_line(state: &State, block: &AnnotatedBlock, row: usize, columns: usize) -> Line<'static> {
    let look = state.look;
    let b = &block.block;
    let tone = heat(b.share);
    let bar = if columns >= WITH_BARS { 8 } else { 0 };
    let mut spans = vec![look.span(value(state, b.samples, b.share) + " ", tone)];
    if bar > 0 {
        spans.push(look.span(look.bar(b.share, bar) + " ", tone));
    }
    let text = block_text(state, block, row, columns);
    spans.push(look.span(fit(&text, columns.saturating_sub(9 + bar)), Tone::Bold));
    Line::from(spans)
}

/// Address, loop and successors of a block.
fn block_text(state: &State, block: &AnnotatedBlock, row: usize, columns: usize) -> String {
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
    let counts = counts(state, block);
    if columns >= WITH_BARS {
        let is_recorded = state.counts().is_some_and(|counts| counts.is_recorded);
        text += &numbers(block, counts.as_ref(), is_recorded);
    }
    for (number, edge) in block.edges.iter().enumerate() {
        let arrow = match Some(*edge) == block.back_to {
            true if *edge <= b.start => "↑",
            true => "↓",
            false => "→",
        };
        text += &format!(" {arrow}{}", address(state, *edge).trim_start());
        if let Some(share) = counts.as_ref().and_then(|c| *c.edges.get(number)?) {
            text += &format!(" {:.1} %", 100.0 * share);
        }
    }
    if let Some(loads) = loads(state, |loads, f| loads.between(f, b.start, b.end)) {
        text += &format!(", {loads}");
    }
    if block.unresolved {
        text += " ? edges missing";
    }
    text
}

/// The counts of a block, if another run was counted.
fn counts(state: &State, block: &AnnotatedBlock) -> Option<BlockCounts> {
    let (counts, report) = (state.counts()?, state.tree.report.as_ref());
    // Time of one command over entries of another would be that of none.
    let report = report.filter(|report| counts.is_of(report.command.as_deref()));
    let software = report.and_then(|r| *r.software.get("task_clock_ms")?);
    let function = &state.blocks.data.ready()?.function;
    counts.of(function, block, software.map(|ms| ms / 1e3))
}

/// The recorded samples of the loads that `find` finds in the function.
fn loads(
    state: &State,
    find: impl FnOnce(&Loads, &HotFunction) -> Option<LoadSamples>,
) -> Option<String> {
    let function = &state.blocks.data.ready()?.function;
    let loads = state.loads()?;
    Some(find(loads, function)?.text())
}

/// Another run's counts of the load at an address.
fn counted_load(state: &State, address: u64) -> Option<String> {
    let function = &state.blocks.data.ready()?.function;
    state.counts()?.load_at(function, address).map(str::to_owned)
}

/// How often a block was entered, and what an entry took; of a loop, its iterations.
fn numbers(block: &AnnotatedBlock, counts: Option<&BlockCounts>, is_recorded: bool) -> String {
    let mut text = String::new();
    if let Some(entries) = counts.and_then(|c| c.entries) {
        let recorded = if is_recorded { "recorded " } else { "" };
        text += &format!(", {} {recorded}entries", format::count(entries as f64));
    }
    match counts.and_then(|c| c.each) {
        Some(Each::Seconds(seconds, error)) => {
            text += &format!(" of {:.2} ns ± {:.0} %", 1e9 * seconds, 100.0 * error);
        }
        Some(Each::Cycles(mean)) => text += &format!(" of {mean:.1} cycles"),
        None => {}
    }
    if let Some(of) = counts.and_then(|c| c.mispredicted).filter(is_shown) {
        let hard = if of.hard { "hard: " } else { "" };
        let share = 100.0 * of.wrong as f64 / of.taken as f64;
        text += &format!(", {hard}{share:.1} % of taken mispredicted");
    }
    match counts.and_then(|c| c.loops) {
        Some((entries, mean)) => {
            text += &format!(", {mean:.1} trips each of {} entries", format::count(entries as f64));
        }
        None if counts.is_some_and(|c| c.at_least.is_some()) => {
            let least = counts.and_then(|c| c.at_least).unwrap_or_default();
            text += &format!(", at least {least} trips");
        }
        // The edges into it do not follow from the blocks.
        None if block.is_head && counts.is_some() => text += ", trip count not known",
        // Samples do not show how often a loop iterates.
        None if block.is_head => text += ", trip count not measured",
        None => {}
    }
    text
}

/// Fewer taken branches than this show no share.
const LEAST_TAKEN: u64 = 10;

/// Whether mispredictions are worth showing: at least one in 1000.
fn is_shown(of: &Mispredicted) -> bool {
    of.taken >= LEAST_TAKEN && of.wrong.saturating_mul(1000) >= of.taken
}

fn instruction(state: &State, line: &AnnotatedLine, row: usize, columns: usize) -> Line<'static> {
    let look = state.look;
    let tone = heat(line.share);
    // Below the block's own bar.
    let bar = if columns >= WITH_BARS { look.bar(line.share, 8) + " " } else { String::new() };
    let used = 9 + width(&bar);
    let text = format!(
        "{}  {}  {}",
        gutter(&state.blocks, row, columns),
        address(state, line.address),
        line.text
    );
    let sampled = loads(state, |loads, f| loads.at(f, line.address).cloned());
    let all = sampled.into_iter().chain(counted_load(state, line.address));
    let text = all.fold(text, |text, load| format!("{text}    {}", look.prose(&load)));
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
    line: Option<&AnnotatedLine>,
    row: usize,
    columns: usize,
) -> Line<'static> {
    let look = state.look;
    let Some((file, line)) = line.and_then(|line| line.source.as_ref()) else {
        return Line::default();
    };
    let text = state.blocks.texts.get(&(file.clone(), *line));
    let text = text.map(|t| format!("  {}", t.trim())).unwrap_or_default();
    let bar = if columns >= WITH_BARS { 9 } else { 0 };
    let gutter = gutter(&state.blocks, row, columns);
    let text = format!("{gutter}  {}:{line}{text}", names::file(file));
    let text = fit(&look.prose(&text), columns.saturating_sub(9 + bar));
    Line::from(vec![Span::raw(" ".repeat(9 + bar)), look.span(text, Tone::Dim)])
}

/// The loops beside a row, the outermost first: from the first row of the head `┌▶` down to the jump
/// back `└─`; if the head is the last block, from the jump down to the head.
pub fn gutter(blocks: &Blocks, row: usize, columns: usize) -> String {
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
