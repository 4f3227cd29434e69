//! The estimated top-down tree, below the samples.

use super::code::{share, short};
use super::renderer::Renderer;
use crate::documents::estimate::{Estimate, Parts, Row};
use crate::format::{self, percent_bounds};
use std::fmt::Write as _;

/// Columns of a bar.
const BAR: usize = 30;
/// Letters of the parts in a bar, in order.
const LETTERS: [char; 7] = ['r', 's', 'f', 'l', 'c', 'm', '.'];
/// Rows of each kind, unless all are asked for.
const ROWS: usize = 5;
/// Rows below this share are not shown.
const LEAST: f64 = 0.01;

impl Renderer<'_> {
    /// The estimate; nothing if it was not asked for.
    pub(super) fn estimate(&mut self) -> std::fmt::Result {
        let Some(estimate) = &self.report.estimate else { return Ok(()) };
        let title = self.paint("1", "Estimated top-down");
        let runs: Vec<String> = estimate
            .runs
            .iter()
            .map(|run| format!("{} {}", run.run, format::seconds(run.seconds)))
            .collect();
        let covered = share(estimate.covered);
        writeln!(self.out, "\n{title}: {covered} of the time; runs: {}", runs.join(", "))?;
        self.program(estimate)?;
        let kinds = [
            ("function", estimate.functions.iter().collect()),
            ("loop", estimate.loops.iter().collect()),
            ("block", outside_of(&estimate.loops, &estimate.blocks)),
        ];
        for (kind, rows) in kinds {
            self.rows(kind, &rows)?;
        }
        for note in &estimate.notes {
            self.paragraph("note: ", note)?;
        }
        Ok(())
    }

    fn program(&mut self, estimate: &Estimate) -> std::fmt::Result {
        for ((label, part), letter) in estimate.program.parts.all().into_iter().zip(LETTERS) {
            if part.high < 0.005 {
                continue;
            }
            let (low, high) = percent_bounds(part.low, part.high);
            let interval = format!("{low}-{high} %");
            let filled = (part.value * BAR as f64).round() as usize;
            let bar = letter.to_string().repeat(filled);
            let line = format!(
                "  {label:<16}{:>7}  {interval:>9}  {bar:<BAR$}  {}",
                if part.has_value() { share(part.value) } else { "?".to_owned() },
                part.source
            );
            writeln!(self.out, "{}", line.trim_end())?;
        }
        self.said(&estimate.program)
    }

    fn said(&mut self, row: &Row) -> std::fmt::Result {
        self.paragraph("        ", &row.sentence)?;
        if row.next.is_empty() { Ok(()) } else { self.paragraph("        next: ", &row.next) }
    }

    fn rows(&mut self, kind: &str, rows: &[&Row]) -> std::fmt::Result {
        let most = if self.style.verbose { usize::MAX } else { ROWS };
        let is_shown = |row: &&&Row| self.style.verbose || row.share >= LEAST;
        let shown: Vec<&&Row> = rows.iter().filter(is_shown).take(most).collect();
        if shown.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "\n   share  {:<BAR$}  {kind}", "time")?;
        for row in shown {
            let name = short(&row.name);
            let place = if kind == "function" || row.start.is_empty() {
                name
            } else {
                format!("{}..{} {name}", row.start, row.end)
            };
            let cycles = row.cycles_per_entry.map_or(String::new(), |cycles| {
                let isolated = row.isolated.map_or(String::new(), |one| isolated(row, one));
                format!("  {cycles:.2} cycles{isolated}")
            });
            writeln!(self.out, "  {:>6}  {}  {place}{cycles}", share(row.share), bar(&row.parts))?;
            if !row.name.starts_with('[') {
                self.said(row)?;
            }
        }
        Ok(())
    }
}

/// Cycles in isolation; with which values, where that was a question.
fn isolated(row: &Row, cycles: f64) -> String {
    let with = match row.isolated_with.as_deref() {
        Some("the program's values") => " with its own values".to_owned(),
        // Why its own are not known.
        Some(text) => text.split_once(": ").map_or(String::new(), |(_, why)| {
            format!(" with made-up values, its own not captured: {why}")
        }),
        None => String::new(),
    };
    format!(", {cycles:.2} in isolation{with}")
}

/// The blocks that are not shown as loops of one block.
fn outside_of<'a>(loops: &[Row], blocks: &'a [Row]) -> Vec<&'a Row> {
    let is_same = |a: &Row, b: &Row| (&a.module, &a.start, &a.end) == (&b.module, &b.start, &b.end);
    blocks.iter().filter(|block| !loops.iter().any(|one| is_same(one, block))).collect()
}

/// A bar of all parts: r retiring, s bad speculation, f fetch bandwidth, l fetch latency, c core, m memory, and dots
/// for what is unexplained.
fn bar(parts: &Parts) -> String {
    let (mut text, mut sum) = (String::new(), 0.0);
    for ((_, part), letter) in parts.all().into_iter().zip(LETTERS) {
        sum += part.value;
        let until = (sum * BAR as f64).round() as usize;
        while text.len() < until.min(BAR) {
            text.push(letter);
        }
    }
    format!("{text:<BAR$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::estimate::Share;

    #[test]
    fn a_loop_of_one_block_is_shown_once() {
        let of = |start: &str| Row { start: start.to_owned(), ..Row::default() };
        let blocks = [of("0x10"), of("0x20")];
        assert_eq!(outside_of(&[of("0x10")], &blocks), [&of("0x20")]);
    }

    #[test]
    fn a_bar_has_a_letter_for_each_part() {
        let of = |value| Share { value, ..Share::default() };
        let parts = Parts {
            retiring: of(0.1),
            core_bound: of(0.5),
            memory_bound: of(0.2),
            unexplained: of(0.2),
            ..Parts::default()
        };
        assert_eq!(bar(&parts), "rrrcccccccccccccccmmmmmm......");
    }
}
