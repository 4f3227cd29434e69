//! The source of one function with the share of each line.

use super::renderer::Renderer;
use crate::documents::report_code::{AnnotatedFunction, SourceLine};
use std::fmt::Write as _;

/// Columns of a bar.
const BAR: usize = 8;
/// Instructions of a line that a short report shows; the rest is counted.
const SHOWN: usize = 8;

impl Renderer<'_> {
    /// Each line with its bar; its instructions below, folded where they have no samples.
    pub(super) fn annotated(&mut self, of: &AnnotatedFunction) -> std::fmt::Result {
        let title = self.paint("1", &of.function);
        let plural = if of.samples == 1 { "" } else { "s" };
        writeln!(
            self.out,
            "\nSource of {title} ({}, {}..{}): {} sample{plural}, {:.1} % of all; shares are of these",
            of.module,
            of.start,
            of.end,
            of.samples,
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
            _ => format!("{:.1} % ±{:.1}", 100.0 * line.share, 100.0 * line.error),
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
