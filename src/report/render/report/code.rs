//! Hot code below the tree: blocks, loops, callers, and the source of one function with the share of each line.

use super::Renderer;
use super::style::Style;
use crate::documents::report::Report;
use crate::documents::report_code::{
    AnnotatedFunction, BlockRow, Clean, CodeRow, EventFunction, EventRow, LoopRow, SourceLine,
    WithValues,
};
use crate::format;
use crate::render::width::elided;
use bench::Status;
use profile::hot::CallNode;
use std::fmt::Write as _;
use tma::Address;

/// Longest name of a function that is shown whole.
const NAME: usize = 48;
/// Code below this share is left out.
const LEAST: f64 = 0.005;
/// Blocks outside of loops are shown from this share on.
const BESIDE: f64 = 0.05;

impl Renderer<'_> {
    /// The name of a function as it is shown: whole where everything is, else without parameters
    /// and not too long.
    pub(super) fn named(&self, name: &str, without: &str) -> String {
        match self.style.verbose {
            true => name.to_owned(),
            false => short(if without.is_empty() { name } else { without }),
        }
    }

    /// Hot functions and blocks; nothing if no samples were taken.
    pub(super) fn code(&mut self) -> std::fmt::Result {
        let report = self.report;
        let Some(sampled) = &report.sampled else {
            // A report from kept evidence has no samples.
            return report.estimate.as_ref().map_or(Ok(()), |of| self.estimated_code(of));
        };
        if sampled.samples == 0 {
            return Ok(());
        }
        writeln!(self.out)?;
        self.functions(&report.functions, sampled)?;
        if let Some(of) = &report.per_function {
            self.per_function(of)?;
        }
        self.events(&report.events)?;
        match &report.estimate {
            Some(estimate) => self.estimated_code(estimate)?,
            None => self.loops(&report.loops)?,
        }
        self.blocks(&blocks_beside(report, self.style))?;
        if let Some(callers) = &report.callers {
            writeln!(self.out, "\nCallers of {}", callers.function)?;
            self.calls(&callers.tree, 0)?;
        }
        if let Some(callees) = &report.callees {
            writeln!(self.out, "\nCallees of {}", callees.function)?;
            self.calls(&callees.tree, 0)?;
        }
        if let Some(of) = &report.annotated {
            self.annotated(of)?;
        }
        Ok(())
    }

    /// A tree of callers or callees.
    fn calls(&mut self, nodes: &[CallNode], depth: usize) -> std::fmt::Result {
        for node in nodes {
            let (share, name) = (share(node.share), self.named(&node.name, &node.short));
            let indent = 2 * depth;
            writeln!(self.out, "  {share:>7}  {:>7}  {:indent$}{name}", node.samples, "")?;
            self.calls(&node.below, depth + 1)?;
        }
        Ok(())
    }

    /// Where the samples of each of several events are.
    fn events(&mut self, rows: &[EventRow]) -> std::fmt::Result {
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(
            self.out,
            "\nEvents: shares of the samples of each, with their sampling error (95 %)"
        )?;
        for row in rows {
            let head = match row.labels.as_slice() {
                [] => format!("  {}: ", row.name),
                labels => format!("  {}, locates {}: ", row.name, labels.join(", ")),
            };
            let of = |f: &EventFunction| {
                let name = self.named(&f.name, &f.short);
                format!("{name} {}", format::share(Some(f.share), Some(f.error)))
            };
            let list: Vec<String> = row.functions.iter().map(of).collect();
            let list = if list.is_empty() { "no samples".to_owned() } else { list.join(", ") };
            writeln!(self.out, "{head}{}", format::several(row.samples, "sample"))?;
            self.paragraph("    ", &list)?;
        }
        Ok(())
    }

    /// Loops, each less those within it.
    fn loops(&mut self, rows: &[LoopRow]) -> std::fmt::Result {
        let shown: Vec<CodeRow> =
            rows.iter().filter(|row| self.is_worth(row.code.share)).map(named).collect();
        if shown.is_empty() {
            return Ok(());
        }
        let (head, lines) = self.block_lines(&shown.iter().collect::<Vec<_>>(), "loop");
        writeln!(self.out, "\n{head}")?;
        lines.iter().try_for_each(|line| writeln!(self.out, "{line}"))
    }

    /// Whether code with this share is shown.
    pub(super) fn is_worth(&self, share: f64) -> bool {
        self.style.verbose || self.style.all_code || share >= LEAST
    }

    fn blocks(&mut self, rows: &[&BlockRow]) -> std::fmt::Result {
        if rows.is_empty() {
            return Ok(());
        }
        let code: Vec<&CodeRow> = rows.iter().map(|row| &row.code).collect();
        let (head, lines) = self.block_lines(&code, "block");
        writeln!(self.out, "\n{head}")?;
        for (row, line) in rows.iter().zip(lines) {
            writeln!(self.out, "{line}")?;
            if let Some(text) = entered(row) {
                self.paragraph("                   in the program: ", &text)?;
            }
            if let Some(clean) = &row.measured {
                self.paragraph("                   isolated: ", &isolated(clean))?;
            }
            if let Some(of) = &row.with_values {
                let text = with_values(of);
                self.paragraph("                   with the program's values: ", &text)?;
            }
        }
        Ok(())
    }
}

/// ` (head 0x20)`: where commands name a loop, if it does not begin there.
pub(super) fn at_head(head: Option<Address>) -> String {
    head.map_or(String::new(), |head| format!(" (head {head})"))
}

/// A loop as code, its head after its function's name.
fn named(row: &LoopRow) -> CodeRow {
    let head = at_head(Some(row.head).filter(|head| *head != row.code.start));
    let with = |name: &str| if name.is_empty() { String::new() } else { format!("{name}{head}") };
    let (function, function_short) = (with(&row.code.function), with(&row.code.function_short));
    CodeRow { function, function_short, ..row.code.clone() }
}

/// The blocks that say more than the loops do: all where something was measured of them, or they were asked for.
fn blocks_beside<'a>(report: &'a Report, style: &Style) -> Vec<&'a BlockRow> {
    let is_known = |row: &BlockRow| {
        row.measured.is_some() || row.with_values.is_some() || row.entries_how.is_some()
    };
    let has_loops = !report.loops.is_empty() || report.estimate.is_some();
    let all = style.verbose || style.all_code || !has_loops || report.blocks.iter().any(is_known);
    let is_beside = |row: &&BlockRow| {
        let is_hot = row.code.loop_depth == 0 && row.code.share >= BESIDE;
        all || is_hot && report.estimate.is_none()
    };
    report.blocks.iter().filter(is_beside).collect()
}

/// How often the block is entered and what an entry costs; nothing where that was not asked for.
fn entered(row: &BlockRow) -> Option<String> {
    let how = row.entries_how.as_deref()?;
    let Some(entries) = row.entries else { return Some(format!("entries {how}")) };
    let error = match row.entries_error {
        Some(error) if error > 0.0 && error < 5e-4 => " ± <0.1 %".to_owned(),
        Some(error) if error > 0.0 => format!(" ± {:.1} %", 100.0 * error),
        _ => String::new(),
    };
    let each_is = if row.entries_error.is_some() { "each" } else { "each at most" };
    let mut text = format!("{entries:.0}{error} entries ({how})");
    let cycles = row.cycles_per_entry.map(|cycles| format!("{} cycles", format::cycles(cycles)));
    let time = row.ns_per_entry.map(|ns| format!("{ns:.2} ns"));
    let each: Vec<String> = cycles.into_iter().chain(time).collect();
    if !each.is_empty() {
        let error = row.per_entry_error.map(|e| format!(" (± {:.0} %)", 100.0 * e));
        text += &format!("; {each_is} {}{}", each.join(" = "), error.unwrap_or_default());
    }
    if let Some((entries, trips)) = row.loop_entries.zip(row.loop_trips) {
        text += &format!("; its loop iterates {trips:.1} times for each of {entries} entries");
    }
    Some(text)
}

/// Cost of the block in isolation.
fn isolated(clean: &Clean) -> String {
    let mut text = match (clean.cycles, clean.range) {
        (Some(cycles), Some((low, high))) => {
            let clock = clean.clock.as_deref().unwrap_or("?");
            let [cycles, low, high] = [cycles, low, high].map(format::cycles);
            format!("{cycles} cycles ({low} to {high}, {clock})")
        }
        _ => "no number".to_owned(),
    };
    if let Some(bound) = &clean.bound {
        text += &format!(", bound by {bound}");
    }
    if let Some(looped) = clean.looped {
        text += &format!(", as a loop {}", format::cycles(looped));
    }
    if clean.status != Status::Ok {
        text += &format!("; {}", clean.status.word());
        text += &clean.reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default();
    }
    if let Some(without) = &clean.without {
        text += &format!("; without its `{without}`");
    }
    if !clean.violated.is_empty() {
        text += &format!("; violated: {}", clean.violated.join(", "));
    }
    text
}

/// Cost of the loop around a block with the values of the program.
fn with_values(of: &WithValues) -> String {
    let why = of.reason.as_deref().unwrap_or("not known why");
    let (Some(cycles), Some((low, high))) = (of.cycles, of.range) else {
        return format!("not measured: {why}");
    };
    let [cycles, low, high] = [cycles, low, high].map(format::cycles);
    let (clock, entry) = (of.clock.as_deref().unwrap_or("?"), of.entry.unwrap_or(0));
    let mut text = format!(
        "{cycles} cycles ({low} to {high}, {clock}) per iteration of its loop from {}, {}; {} \
         iterations from entry {entry}",
        of.head.unwrap_or_default(),
        format::several(of.blocks as u64, "block"),
        of.iterations.unwrap_or(0)
    );
    if let Some(status) = of.status.filter(|status| *status != Status::Ok) {
        text += &format!("; {}: {why}", status.word());
    }
    text
}

pub(super) fn share(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A name, not too long.
pub(super) fn short(name: &str) -> String {
    elided(name, NAME)
}

/// Columns of a bar.
const BAR: usize = 8;
/// Instructions of a line that a short report shows; the rest is counted.
const SHOWN: usize = 8;

impl Renderer<'_> {
    /// Each line with its bar; its instructions below, folded where they have no samples.
    fn annotated(&mut self, of: &AnnotatedFunction) -> std::fmt::Result {
        let title = self.paint("1", &of.function);
        writeln!(
            self.out,
            "\nSource of {title} ({}, {}..{}): {}, {:.1} % of all; shares are of these",
            of.module,
            of.start,
            of.end,
            format::several(of.samples, "sample"),
            100.0 * of.share
        )?;
        let mut file = None;
        for line in &of.lines {
            if line.file.as_deref() != file {
                file = line.file.as_deref();
                writeln!(self.out, "{}", file.unwrap_or("(no line known)"))?;
            }
            self.source_line(line)?;
        }
        for why in &of.missing {
            self.paragraph("missing: ", why)?;
        }
        for note in &of.notes {
            self.paragraph("note: ", note)?;
        }
        Ok(())
    }

    fn source_line(&mut self, line: &SourceLine) -> std::fmt::Result {
        let marks = self.style.marks();
        let text = line.text.as_deref().unwrap_or_default().trim_end().replace('\t', "    ");
        let number = line.line.map(|n| n.to_string()).unwrap_or_default();
        let share = match line.samples {
            0 => String::new(),
            _ => format::share(Some(line.share), Some(line.error)),
        };
        // A cast of a float saturates.
        let full = (line.share * BAR as f64).round() as usize;
        let bar: String = std::iter::repeat_n(marks.full, full.min(BAR)).collect();
        let mark = if line.hottest { marks.flagged } else { " " };
        let shown = format!("{mark} {share:>13} {bar:<BAR$} {number:>5} {text}");
        let shown = if line.hottest { self.paint("1", shown.trim_end()) } else { shown };
        writeln!(self.out, "{}", shown.trim_end())?;
        self.instructions(line)
    }

    fn instructions(&mut self, line: &SourceLine) -> std::fmt::Result {
        let indent = " ".repeat(BAR + 17);
        let all = self.style.verbose || line.line.is_none();
        if !all && line.samples == 0 {
            return Ok(());
        }
        let mut hot: Vec<usize> = (0..line.instructions.len()).collect();
        if !all {
            hot.retain(|at| line.instructions[*at].samples > 0);
            hot.sort_by_key(|at| std::cmp::Reverse(line.instructions[*at].samples));
            hot.truncate(SHOWN);
            hot.sort_unstable();
        }
        for at in &hot {
            let one = &line.instructions[*at];
            let share = match one.samples {
                0 => String::new(),
                _ => format!("{:.1} %", 100.0 * one.share),
            };
            writeln!(self.out, "{indent}{share:>8}  {}  {}", one.address, one.text)?;
        }
        match line.instructions.len() - hot.len() {
            0 => Ok(()),
            1 => writeln!(self.out, "{indent}{:>8}  1 more instruction", ""),
            rest => writeln!(self.out, "{indent}{:>8}  {rest} more instructions", ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::report::Source;
    use crate::documents::report_code::Sampled;
    use crate::render::report::render;

    #[test]
    fn a_loop_that_begins_elsewhere_than_at_its_head_names_both() {
        let of = |head, start| LoopRow {
            code: CodeRow {
                function: "walk".to_owned(),
                start: Address(start),
                end: Address(0x40),
                share: 0.5,
                ..CodeRow::default()
            },
            head: Address(head),
            ..LoopRow::default()
        };
        let mut report = Report::new(Source::NoPmu);
        report.sampled = Some(Sampled { samples: 100, ..Sampled::default() });
        report.loops = vec![of(0x30, 0x20), of(0x38, 0x38)];
        let text = render(&report, &Style::default());
        assert!(text.contains("0x20..0x40 walk (head 0x30)"), "{text}");
        assert!(text.contains("0x38..0x40 walk") && !text.contains("(head 0x38)"), "{text}");
    }
}
