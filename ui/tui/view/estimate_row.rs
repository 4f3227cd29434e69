//! Functions, loops and blocks of an estimate: share, the parts of their time, bottleneck.

use super::names;
use super::put::heat;
use crate::tui::look::{Look, Tone, fit, fit_middle, fit_number, fit_right, width};
use crate::tui::state::Piece;
use ratatui::text::{Line, Span};
use report::documents::estimate::{Bottleneck, Node, Parts, Row};
use report::format::{self, percent_bounds};

/// The titles above five bars of so many cells each.
pub fn bar_titles(cells: usize) -> String {
    let names = if cells < 9 { SHORT } else { PARTS };
    let one = |name: &str| fit(&name.chars().take(cells).collect::<String>(), cells) + " ";
    names.into_iter().map(one).collect()
}

/// Titles above the bars of the parts.
const PARTS: [&str; 5] = ["Retiring", "Bad spec.", "Frontend", "Backend", "?"];
/// Short titles.
const SHORT: [&str; 5] = ["Ret", "Spec", "Fe", "Be", "?"];

/// Widths of the columns; 0: not shown.
#[derive(Debug, Clone, Copy)]
pub struct Columns {
    /// Cells of each of the five bars.
    bar: usize,
    bottleneck: usize,
    /// Cycles per entry in the program and in isolation, and entries.
    cycles: usize,
    name: usize,
}

impl Columns {
    /// The widths on a screen of `columns` columns; loops and blocks have cycles.
    pub fn of(columns: usize, with_cycles: bool) -> Self {
        let bar = match columns {
            130.. => 9,
            110.. if !with_cycles => 9,
            90.. => 4,
            70.. if !with_cycles => 4,
            50.. => 2,
            _ => 0,
        };
        let bottleneck = if columns >= 30 { 15 } else { 0 };
        let cycles = match columns {
            _ if !with_cycles => 0,
            90.. => 28,
            70.. => 16,
            _ => 0,
        };
        let bars = if bar > 0 { 5 * (bar + 1) } else { 0 };
        let gap = |n: usize| if n > 0 { n + 1 } else { 0 };
        let used = 9 + bars + gap(bottleneck) + gap(cycles);
        Self { bar, bottleneck, cycles, name: columns.saturating_sub(used) }
    }

    /// The titles above them; `name` is that of the last one.
    pub fn titles(&self, name: &str) -> String {
        let mut text = fit_right("share", 8) + " ";
        if self.bar > 0 {
            text += &bar_titles(self.bar);
        }
        if self.bottleneck > 0 {
            text += &(fit("bottleneck", self.bottleneck) + " ");
        }
        text += match self.cycles {
            28 => " cycles isolated    entries ",
            16 => " cycles isolated",
            _ => "",
        };
        if self.cycles > 0 {
            text += " ";
        }
        text + name
    }

    /// A function's row.
    pub fn of_function(&self, look: Look, row: &Row) -> Line<'static> {
        let whole = function(row);
        match width(&whole) > self.name {
            true => self.line(look, row, &fit_middle(names::short(&row.name), self.name)),
            false => self.line(look, row, &whole),
        }
    }

    /// A row; `name` is what its last column shows.
    pub fn line(&self, look: Look, row: &Row, name: &str) -> Line<'static> {
        let tone = heat(row.share);
        let mut spans = vec![look.span(share(row.share) + " ", tone)];
        if self.bar > 0 {
            spans.extend(bars(look, &row.parts, self.bar));
        }
        if self.bottleneck > 0 {
            let tone = if row.bottleneck == Bottleneck::default() { Tone::Dim } else { Tone::Bold };
            spans.push(look.span(fit(&bottleneck(row), self.bottleneck) + " ", tone));
        }
        if self.cycles > 0 {
            let number = |value: Option<f64>, columns, words: fn(f64) -> String| match value {
                Some(value) => fit_number(&words(value), value, columns),
                None => fit_right("-", columns),
            };
            let in_program = number(row.cycles_per_entry, 7, format::cycles);
            let mut text = format!("{in_program} {}", number(row.isolated, 8, format::cycles));
            if self.cycles > 16 {
                text += &format!(" {}", number(row.entries, 11, format::count));
            }
            spans.push(look.span(text + " ", Tone::Plain));
        }
        spans.push(Span::raw(fit(name, self.name)));
        Line::from(spans)
    }
}

/// Five bars: Retiring, Bad Speculation, Frontend, Backend, unexplained.
pub fn bars(look: Look, parts: &Parts, cells: usize) -> Vec<Span<'static>> {
    let level1 = parts.level1();
    let most = level1.iter().copied().fold(0.0, f64::max);
    let bar = |value: f64| {
        let tone = if value == most { Tone::Bold } else { Tone::Plain };
        look.span(look.bar(value, cells) + " ", tone)
    };
    level1.into_iter().map(bar).collect()
}

/// A share in 8 columns.
pub fn share(share: f64) -> String {
    fit_right(&format!("{:.2} %", 100.0 * share), 8)
}

/// The bottleneck in words.
pub fn bottleneck(row: &Row) -> String {
    match row.bottleneck {
        Bottleneck(None) if row.start.is_none() => "not divided".to_owned(),
        known => known.words(),
    }
}

/// `↺ loop 0x1953..0x195f`.
pub fn place(piece: Piece, row: &Row) -> String {
    let kind = match piece {
        Piece::Loop(_) => "↺ loop",
        Piece::Block(_) => "  block",
    };
    format!("{kind} {}", row.place())
}

/// A function's name.
pub fn function(row: &Row) -> String {
    match row.module.rsplit('/').next() {
        Some(module) if !module.is_empty() => format!("{}  {module}", names::short(&row.name)),
        _ => row.name.clone(),
    }
}

/// Columns of a label, and of the widest bar.
pub const LABEL: usize = 20;
const BAR: usize = 20;

/// A node: label, bar, value, interval, source.
pub fn node_line(look: Look, node: &Node, is_bottleneck: bool, columns: usize) -> Line<'static> {
    let share = &node.share;
    let tone = match (is_bottleneck, share.high) {
        (true, _) => Tone::Hot,
        (_, high) if high < 0.005 => Tone::Dim,
        _ => Tone::Plain,
    };
    let label = format!("{}{}", " ".repeat(2 * node.depth), node.label);
    let mut spans = vec![look.span(fit(&label, LABEL.min(columns.saturating_sub(8))), tone)];
    let bar = columns.saturating_sub(LABEL + 52).min(BAR);
    if bar > 0 {
        spans.push(look.span(look.bar(share.value, bar) + " ", tone));
    }
    let value = match share.has_value() {
        true => format!("{:.1} %", 100.0 * share.value),
        false => "?".to_owned(),
    };
    spans.push(look.span(fit_right(&value, 8), tone));
    if columns >= 44 {
        let (low, high) = percent_bounds(share.low, share.high);
        spans.push(look.span(format!("  {}", fit(&format!("{low} to {high} %"), 13)), tone));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    let mark = if is_bottleneck { "◀ bottleneck, " } else { "" };
    let reason = share.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let text = fit(&format!("{mark}{}{reason}", share.source), columns.saturating_sub(used + 1));
    spans.push(look.span(format!(" {}", look.prose(text.trim_end())), tone));
    Line::from(spans)
}
