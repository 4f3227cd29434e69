//! Renders the estimated top-down tree, below the samples.

use super::Renderer;
use super::code::{at_head, share, short};
use crate::documents::count::ContendedLine;
use crate::documents::estimate::{Estimate, Parts, Row, Run, Share, Values};
use crate::format::{self, percent_bounds};
use std::fmt::Write as _;

/// Columns of a bar.
const BAR: usize = 24;
/// Columns of the labels.
const LABEL: usize = 22;
/// Letters of the parts in a bar, in order.
const LETTERS: [char; 7] = ['r', 's', 'f', 'l', 'c', 'm', '.'];
/// Columns of the sampling error of a share, with the gap before it.
const ERROR: usize = 6;
/// Rows of each kind, unless all are asked for.
const ROWS: usize = 5;
/// Contended lines that are shown.
const LINES: usize = 3;
/// Rows below this share are not shown.
const LEAST: f64 = 0.01;
/// Rows below this share have no sentence.
const WORDS: f64 = 0.1;
/// Most rows with a sentence.
const SENTENCES: usize = 3;
/// Parts below this share are left out if their upper end is below [`LITTLE`].
const NONE: f64 = 0.005;
/// Upper end of a part from which it is shown.
const LITTLE: f64 = 0.05;

impl Renderer<'_> {
    /// The estimated tree, once; nothing if it was not asked for.
    pub(super) fn estimate(&mut self) -> std::fmt::Result {
        let Some(estimate) = &self.report.estimate else { return Ok(()) };
        // Its verdict says why there is none.
        if estimate.covered <= 0.0 && !self.style.verbose {
            return Ok(());
        }
        let title = self.paint("1", "Estimated top-down");
        let covered = share(estimate.covered);
        write!(self.out, "\n{title} of the code with {covered} of the samples")?;
        if self.style.verbose {
            let of = |run: &Run| format!("{} {}", run.run, format::seconds(run.seconds));
            let runs: Vec<String> = estimate.runs.iter().map(of).collect();
            write!(self.out, "; runs: {}", runs.join(", "))?;
        }
        writeln!(self.out)?;
        let parts = &estimate.program.parts;
        let rows = estimate.loops.iter().chain(&estimate.blocks);
        let bars: String =
            rows.filter(|row| row.share >= WORDS).map(|row| bar(&row.parts)).collect();
        for ((of, part), letter) in parts.iter().zip(LETTERS) {
            // The tree is the legend of the rows' bars, too.
            let is_shown = part.value >= NONE || part.high >= LITTLE || bars.contains(letter);
            if !self.style.verbose && !is_shown {
                continue;
            }
            self.part_line(&format!("{letter} {}", of.label()), part, letter)?;
            for (child, part) in parts.below(of) {
                if self.style.verbose || part.value >= LEAST || part.high >= LITTLE {
                    self.part_line(&format!("    {}", child.label()), part, letter)?;
                }
            }
        }
        self.contended_lines(&estimate.contended_lines)
    }

    /// The cache lines that threads contend for.
    fn contended_lines(&mut self, lines: &[ContendedLine]) -> std::fmt::Result {
        let most = if self.style.verbose { usize::MAX } else { LINES };
        for line in lines.iter().take(most) {
            self.paragraph("  ", &line.text())?;
        }
        Ok(())
    }

    fn part_line(&mut self, label: &str, part: &Share, letter: char) -> std::fmt::Result {
        let (low, high) = percent_bounds(part.low, part.high);
        let (value, interval) = match part.has_value() {
            true => (share(part.value), format!("{low}-{high} %")),
            false => ("?".to_owned(), format!("up to {high} %")),
        };
        let filled = (part.value * BAR as f64).round() as usize;
        let bar = letter.to_string().repeat(filled);
        let how = match (&part.reason, part.has_value()) {
            (Some(why), false) => format!("not known: {why}"),
            _ => part.source.label(),
        };
        let line = format!("  {label:<LABEL$}{value:>7}  {interval:>10}  {bar:<BAR$}  {how}");
        writeln!(self.out, "{}", line.trim_end())
    }

    /// The loops, and blocks outside of them, that it divides; with `--verbose` functions and all others, too.
    pub(super) fn estimated_code(&mut self, estimate: &Estimate) -> std::fmt::Result {
        let blocks: Vec<&Row> = estimate.blocks_outside_of_loops().map(|(_, row)| row).collect();
        if self.style.verbose {
            self.rows("function", &estimate.functions.iter().collect::<Vec<_>>())?;
            self.rows("loop", &estimate.loops.iter().collect::<Vec<_>>())?;
            return self.rows("block", &blocks);
        }
        let mut rows: Vec<&Row> = estimate.loops.iter().chain(blocks).collect();
        rows.sort_by(|a, b| b.share.total_cmp(&a.share));
        self.rows("loop or block", &rows)
    }

    /// The table of `rows`, with sentences on the first of them.
    fn rows(&mut self, kind: &str, rows: &[&Row]) -> std::fmt::Result {
        let most = if self.style.verbose { usize::MAX } else { ROWS };
        let is_shown = |row: &&&Row| self.style.verbose || row.share >= LEAST;
        let shown: Vec<&&Row> = rows.iter().filter(is_shown).take(most).collect();
        if shown.is_empty() {
            return Ok(());
        }
        let has_errors = self.report.sampled.as_ref().is_some_and(|of| of.samples > 0);
        let gap = if has_errors { ERROR } else { 0 };
        writeln!(self.out, "\n   share  {:gap$}{:<BAR$}  {kind}", "", "its time")?;
        for (number, row) in shown.iter().enumerate() {
            let name = short(&row.name);
            let place = match kind == "function" || row.start.is_none() {
                true => name,
                false => format!("{} {name}{}", row.place(), at_head(row.head)),
            };
            let is_brief = !self.style.verbose && (row.share < WORDS || number >= SENTENCES);
            let label = if is_brief { bottleneck(row) } else { String::new() };
            let (error, bar) = (self.error(row.share), bar(&row.parts));
            let error = if has_errors { format!(" {error:<0$}", ERROR - 1) } else { error };
            let line = format!("  {:>6}{error}  {bar}  {place}{label}", share(row.share));
            writeln!(self.out, "{}", line.trim_end())?;
            if !is_brief {
                self.said(row)?;
            }
        }
        let left = rows.len() - shown.len();
        if left > 0 {
            let hidden = rows.iter().map(|row| row.share).sum::<f64>()
                - shown.iter().map(|row| row.share).sum::<f64>();
            let text = format!("  … {left} more, {} together: -v", share(hidden.max(0.0)));
            let text = self.paint("2", &text);
            writeln!(self.out, "{text}")?;
        }
        Ok(())
    }

    /// Sentence of a row: its bottleneck and cycles.
    fn said(&mut self, row: &Row) -> std::fmt::Result {
        if row.name.starts_with('[') {
            return Ok(());
        }
        let mut said = vec![row.sentence.trim_end_matches('.').to_owned()];
        if let Some(cycles) = row.cycles_per_entry {
            let isolated = row.isolated.map_or(String::new(), |one| isolated(row, one));
            let loops = self.report.estimate.iter().flat_map(|estimate| &estimate.loops);
            let of = match loops.into_iter().any(|one| std::ptr::eq(one, row)) {
                true => "an iteration",
                false => "an entry",
            };
            said.push(format!("{} cycles {of}{isolated}", format::cycles(cycles)));
        }
        self.paragraph("          ", &format!("{}.", said.join("; ")))?;
        match row.next.is_empty() || !self.style.verbose {
            true => Ok(()),
            false => writeln!(self.out, "          {}", row.next),
        }
    }
}

/// Cycles in isolation; with which values, where that was a question.
fn isolated(row: &Row, cycles: f64) -> String {
    let with = match &row.isolated_with {
        Some(Values::Own) => " with its own values".to_owned(),
        Some(Values::MadeUp(Some(why))) => {
            format!(" with made-up values (the program's were not captured: {why})")
        }
        Some(Values::MadeUp(None)) | None => String::new(),
    };
    format!(", {} in isolation{with}", format::cycles(cycles))
}

/// The bottleneck, in short.
fn bottleneck(row: &Row) -> String {
    row.bottleneck.0.map_or("  undecided".to_owned(), |most| {
        format!("  {} {:.0} %", most.label(), 100.0 * row.parts.share(most).value)
    })
}

/// A bar of all parts: r retiring, s bad speculation, f fetch bandwidth, l fetch latency, c core, m memory, and dots
/// for what is unexplained.
fn bar(parts: &Parts) -> String {
    let (mut text, mut sum) = (String::new(), 0.0);
    for ((_, part), letter) in parts.iter().zip(LETTERS) {
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
    use crate::documents::Report;
    use crate::documents::estimate::{Part, Share};
    use crate::documents::report::Source;
    use crate::render::report::render;
    use crate::render::report::style::Style;
    use tma::Address;

    /// A report of an estimate with so many loops and blocks of one share.
    fn shown(loops: &[u64], blocks: &[u64]) -> String {
        let share = 1.0 / blocks.len() as f64;
        let sentence = "Undecided.".to_owned();
        let of = |start: &u64| Row {
            start: Some(Address(*start)),
            end: Some(Address(start + 8)),
            share,
            sentence: sentence.clone(),
            ..Row::default()
        };
        let (loops, blocks) = (loops.iter().map(of).collect(), blocks.iter().map(of).collect());
        let mut report = Report::new(Source::NoPmu);
        report.estimate = Some(Estimate { loops, blocks, ..Estimate::default() });
        render(&report, &Style::default())
    }

    #[test]
    fn a_loop_of_one_block_is_shown_once() {
        let text = shown(&[0x10], &[0x10, 0x20]);
        assert_eq!((text.matches("0x10").count(), text.matches("0x20").count()), (1, 1), "{text}");
    }

    #[test]
    fn the_first_rows_have_sentences_and_the_others_a_word() {
        let text = shown(&[], &[0x10, 0x20, 0x30, 0x40, 0x50]);
        assert_eq!(text.matches("Undecided.").count(), SENTENCES, "{text}");
        assert_eq!(text.matches("  undecided\n").count(), 5 - SENTENCES, "{text}");
    }

    #[test]
    fn a_part_is_followed_by_what_it_consists_of() {
        let of = |value| Share { value, high: value, ..Share::default() };
        let mut parts = Parts { memory_bound: of(0.7), unexplained: of(0.3), ..Parts::default() };
        parts.set(Part::DramBound, of(0.6));
        parts.set(Part::L2Bound, of(0.1));
        parts.set(Part::L3Bound, of(0.0));
        let mut report = Report::new(Source::NoPmu);
        let program = Row { parts, ..Row::default() };
        report.estimate = Some(Estimate { covered: 1.0, program, ..Estimate::default() });
        let text = render(&report, &Style::default());
        let labels = ["  m Memory Bound", "      L2 Bound", "      DRAM Bound", "  . Unexplained"];
        let shown: Vec<&str> =
            text.lines().filter_map(|line| line.get(..24)).map(str::trim_end).collect();
        assert!(shown.windows(4).any(|four| four == labels), "{text}");
        let csv = crate::render::report::csv::rows(&report);
        let is_row = |line: &str| line.starts_with("estimate,dram_bound,memory_bound,,0.6");
        assert!(csv.lines().any(is_row), "{csv}");
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
        assert_eq!(bar(&parts), "rrccccccccccccmmmmm.....");
    }
}
