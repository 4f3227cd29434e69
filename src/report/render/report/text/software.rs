//! Software counts: all of them where they are all that was counted, else those that say something.

use super::renderer::Renderer;
use crate::documents::series;
use crate::format;
use std::fmt::Write as _;

/// Below so many processors in use a program waited, or did not get them.
const IDLE: f64 = 0.8;
/// Context switches a second from which they are worth a word: each takes some microseconds.
const SWITCHES: f64 = 1000.0;

impl Renderer<'_> {
    pub(super) fn software(&mut self) -> std::fmt::Result {
        let report = self.report;
        let is_all = report.sampled.is_none()
            && report.estimate.is_none()
            && report.nodes.iter().all(|n| n.value.is_none());
        match is_all || report.repeats > 1 || self.style.verbose {
            _ if report.software.is_empty() => Ok(()),
            true => self.software_table(),
            false => self.notable(),
        }
    }

    /// Notable counts on one line.
    fn notable(&mut self) -> std::fmt::Result {
        let value = |name: &str| self.report.software.get(name).copied().flatten();
        let seconds = value("wall_ms").filter(|ms| *ms > 0.0).map(|ms| ms / 1e3);
        let used = value("cpus_used").filter(|used| *used < IDLE);
        let used = used.map(|used| {
            format!(
                "{used:.2} CPUs busy on average; the rest of the time it slept, or waited for a CPU"
            )
        });
        let rate = value("context_switches").zip(seconds).map(|(number, seconds)| number / seconds);
        let switches = rate
            .filter(|rate| *rate >= SWITCHES)
            .map(|rate| format!("{} context switches a second", format::number(rate)));
        // The verdict has the faults of a program that is in the kernel.
        let is_kernel = self.report.sampled.as_ref().and_then(|of| of.kernel) >= Some(0.5);
        let faults = self.report.many_faults().filter(|_| !is_kernel);
        let faults = faults
            .map(|rate| format!("{} page faults a second of processor time", format::number(rate)));
        let found: Vec<String> = [used, switches, faults].into_iter().flatten().collect();
        if found.is_empty() {
            return Ok(());
        }
        writeln!(self.out)?;
        self.paragraph("", &found.join("; "))
    }

    fn software_table(&mut self) -> std::fmt::Result {
        let report = self.report;
        let over = if report.repeats > 1 { ", mean of the runs" } else { "" };
        writeln!(self.out, "\nSoftware counts{over}")?;
        let label =
            report.software.keys().map(|k| series::software_label(k).len()).max().unwrap_or(0);
        for (name, value) in &report.software {
            let is_time = series::is_software_time(name);
            let text = match value {
                // No digits that its error makes meaningless.
                Some(v) if report.software_error.get(name).is_some_and(|e| *e >= 1.0) => {
                    format!("{v:>14.0}")
                }
                Some(v) if is_time => format!("{v:>14.2}"),
                Some(v) if v.fract() == 0.0 => format!("{:>14}", format::count(*v)),
                Some(v) => format!("{v:>14.3}"),
                None => {
                    let why = report.software_missing.get(name);
                    why.cloned().unwrap_or_else(|| "not measured".into())
                }
            };
            let unit = if value.is_some() && is_time { " ms" } else { "" };
            let error = report.software_error.get(name);
            let error = error.map(|e| format!(" ±{}", format::number(*e))).unwrap_or_default();
            writeln!(self.out, "  {:<label$}  {text}{unit}{error}", series::software_label(name))?;
        }
        Ok(())
    }
}
