//! The verdict above a report; below it what to do next, and what must be known.

use super::renderer::Renderer;
use std::fmt::Write as _;

impl Renderer<'_> {
    /// The verdict; nothing if there is none.
    pub(super) fn verdict(&mut self) -> std::fmt::Result {
        let found = self.report.conclusion.as_ref().filter(|found| !found.verdict.is_empty());
        let Some(found) = found else { return Ok(()) };
        writeln!(self.out)?;
        let text = self.paint("1", &found.verdict);
        self.paragraph("", &text)
    }

    /// Commands that show more, each on a line of its own and whole, so that it can be copied.
    pub(super) fn next(&mut self) -> std::fmt::Result {
        let steps = self.report.conclusion.as_ref().map_or(&[][..], |found| &found.next);
        if steps.is_empty() || self.style.quiet {
            return Ok(());
        }
        writeln!(self.out)?;
        for (number, step) in steps.iter().enumerate() {
            let head = if number == 0 { "next: " } else { "      " };
            self.paragraph(head, &format!("{}:", step.why))?;
            writeln!(self.out, "        {}", step.command)?;
        }
        Ok(())
    }

    /// Notes: of samples where they are shown, and of the whole.
    pub(super) fn notes(&mut self) -> std::fmt::Result {
        let report = self.report;
        if self.style.quiet {
            return Ok(());
        }
        if let Some(estimate) = &report.estimate {
            let assumed = if self.style.verbose { &estimate.assumed[..] } else { &[] };
            for note in estimate.notes.iter().chain(assumed) {
                self.paragraph("note: ", note)?;
            }
        }
        if let Some(sampled) = &report.sampled {
            if self.style.verbose && sampled.samples > 0 {
                self.paragraph("note: ", &sampled.skid)?;
            }
            for note in &sampled.notes {
                self.paragraph("note: ", note)?;
            }
        }
        for note in &report.notes {
            self.paragraph("note: ", note)?;
        }
        Ok(())
    }
}
