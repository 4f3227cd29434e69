//! Renders what the wall time went to, where that is not only the program's own code.

use super::Renderer;
use super::code::share;
use crate::documents::wall_time::TimeKind;
use crate::format::percent_bounds;
use std::fmt::Write as _;

/// Below this share of the wall time outside of the program's own code the parts are not shown.
const LEAST: f64 = 0.1;
/// Parts below this share are left out.
const NONE: f64 = 0.005;

impl Renderer<'_> {
    /// Whether the parts of the wall time are shown.
    pub(super) fn shows_wall_time(&self) -> bool {
        let rows = &self.report.wall_time;
        let others = rows.iter().filter(|row| row.kind != TimeKind::OwnCode);
        let others: f64 = others.map(|row| row.share).sum();
        !rows.is_empty() && (self.style.verbose || others >= LEAST)
    }

    /// The parts of the wall time, with advice.
    pub(super) fn wall_time(&mut self) -> std::fmt::Result {
        if !self.shows_wall_time() {
            return Ok(());
        }
        let title = self.paint("1", "Wall time");
        writeln!(self.out, "\n{title}")?;
        for row in &self.report.wall_time {
            if row.high < NONE && !self.style.verbose {
                continue;
            }
            let (low, high) = percent_bounds(row.low, row.high);
            let interval = match low == high {
                true => String::new(),
                false => format!("{low}-{high} %"),
            };
            let label = row.label();
            let line =
                format!("  {label:<16}{:>7}  {interval:>10}  {}", share(row.share), row.source);
            writeln!(self.out, "{}", line.trim_end())?;
            if let Some(advice) = &row.advice {
                self.paragraph("          ", advice)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::documents::Report;
    use crate::documents::report::Source;
    use crate::documents::wall_time::{TimeKind, TimeRow, TimeSource};
    use crate::render::report::{Style, render};

    #[test]
    fn time_that_may_be_others_is_not_called_waiting() {
        let shown = |low: f64| {
            let mut report = Report::new(Source::NoPmu);
            let row = TimeRow { kind: TimeKind::Waiting, share: 0.9, low, ..TimeRow::default() };
            report.wall_time = vec![TimeRow { high: 0.9, ..row }];
            render(&report, &Style::default())
        };
        assert!(shown(0.9).contains("  waiting "), "{}", shown(0.9));
        assert!(shown(0.1).contains("  not running "), "{}", shown(0.1));
    }

    #[test]
    fn parts_are_shown_where_others_than_own_code_matter() {
        let row = |kind, share: f64, source| TimeRow {
            kind,
            share,
            low: share - 0.02,
            high: share + 0.02,
            source,
            advice: (kind == TimeKind::PageFaults).then(|| "reuse memory".to_owned()),
            ..TimeRow::default()
        };
        let shown = |faults: f64| {
            let mut report = Report::new(Source::NoPmu);
            report.wall_time = vec![
                row(TimeKind::OwnCode, 1.0 - faults, TimeSource::Sampled),
                row(TimeKind::PageFaults, faults, TimeSource::Sampled),
            ];
            render(&report, &Style::default())
        };
        let text = shown(0.75);
        for line in [
            "Wall time\n",
            "  own code         25.0 %     23-27 %  sampled\n",
            "  page faults      75.0 %     73-77 %  sampled\n          reuse memory\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(!shown(0.05).contains("Wall time"));
    }
}
