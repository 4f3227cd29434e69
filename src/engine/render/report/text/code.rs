//! Hot functions and blocks, below the tree.

use super::renderer::Renderer;
use crate::documents::report::{Report, Source};
use crate::documents::report_code::{BlockRow, Clean, EventFunction, EventRow, WithValues};
use crate::format;
use crate::render::fit::elided;
use profile::hot::CallNode;
use std::fmt::Write as _;

/// Longest name of a function that is shown whole.
const NAME: usize = 48;

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
        let Some(sampled) = &report.sampled else { return Ok(()) };
        let title = self.paint("1", "Hot code");
        let lost = match sampled.lost {
            0 => String::new(),
            lost => format!(", {lost} records lost"),
        };
        writeln!(self.out, "\n{title}: {} samples of {}{lost}", sampled.samples, sampled.event)?;
        self.functions(&report.functions)?;
        if let Some(of) = &report.per_function {
            self.per_function(of)?;
        }
        self.events(&report.events)?;
        self.blocks(&report.blocks)?;
        self.next_step(report)?;
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
        if sampled.samples > 0 {
            self.paragraph("note: ", &sampled.skid)?;
        }
        for note in &sampled.notes {
            self.paragraph("note: ", note)?;
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
                format!("{name} {:.1} % ±{:.1}", 100.0 * f.share, 100.0 * f.error)
            };
            let list: Vec<String> = row.functions.iter().map(of).collect();
            let list = if list.is_empty() { "no samples".to_owned() } else { list.join(", ") };
            let plural = if row.samples == 1 { "" } else { "s" };
            writeln!(self.out, "{}{} sample{plural}", head, row.samples)?;
            self.paragraph("    ", &list)?;
        }
        Ok(())
    }

    fn blocks(&mut self, rows: &[BlockRow]) -> std::fmt::Result {
        if rows.is_empty() {
            return Ok(());
        }
        let (head, lines) = self.block_lines(rows);
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

    /// What shows more of the hottest block.
    fn next_step(&mut self, report: &Report) -> std::fmt::Result {
        let rows = &report.blocks;
        // Only programs have blocks to measure in isolation, not jitdumps.
        let is_program =
            |row: &&BlockRow| row.path.starts_with('/') && !row.path.ends_with(".dump");
        let first = rows.iter().find(is_program);
        let Some(row) = first.filter(|_| rows.iter().all(|row| row.measured.is_none())) else {
            return Ok(());
        };
        let known = report.command.as_ref().map(|words| format::command(words));
        let mut steps = Vec::new();
        if let (Source::NoPmu, None, Some(command)) = (report.source, &report.estimate, &known) {
            steps.push(format!(
                "`tdtool report --estimate -- {command}` says why functions and loops take their time"
            ));
        }
        let command = known.as_deref().unwrap_or("COMMAND");
        let place = format!("{}:{}", row.path, row.start);
        steps.push(format!(
            "`tdtool block {place}` shows what bounds the hottest block with its data in the first cache"
        ));
        if row.loop_depth > 0 {
            // It may be one block of several, which only the program's values bring together.
            steps.push(format!(
                "`tdtool block {}:@{} -- ARGS` its whole loop, with the values of the program run with ARGS",
                row.path, row.start
            ));
        }
        steps.push("`tdtool report --measure` measures all of these".to_owned());
        steps.push(format!(
            "`tdtool count --hot --branches --loads -- {command}` counts entries, mispredictions and cache misses"
        ));
        self.paragraph("next:  ", &steps.join("; "))
    }
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
    let cycles = row.cycles_per_entry.map(|cycles| format!("{cycles:.2} cycles"));
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
            format!("{cycles:.2} cycles ({low:.2} to {high:.2}, {clock})")
        }
        _ => "no number".to_owned(),
    };
    if let Some(bound) = &clean.bound {
        text += &format!(", bound by {bound}");
    }
    if let Some(looped) = clean.looped {
        text += &format!(", as a loop {looped:.2}");
    }
    if clean.status != "ok" {
        text += &format!("; {}", clean.status);
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
    let (clock, entry) = (of.clock.as_deref().unwrap_or("?"), of.entry.unwrap_or(0));
    let plural = if of.blocks == 1 { "" } else { "s" };
    let mut text = format!(
        "{cycles:.2} cycles ({low:.2} to {high:.2}, {clock}) per iteration of its loop from {}, {} \
         block{plural}; {} iterations from entry {entry}",
        of.head,
        of.blocks,
        of.iterations.unwrap_or(0)
    );
    if of.status != "ok" {
        text += &format!("; {}: {why}", of.status);
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
