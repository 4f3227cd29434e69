//! The bounds beside the measurement, as bars on one scale.

use super::layout::WIDTH;
use super::rows::{Rows, Style, Weight};
use bench::{Bound, Measurement, Status, Throughput};

/// Columns of the longest bar, and on a narrow page.
const BAR: usize = 24;
const NARROW: usize = 8;

/// Adds one bar for the measurement and one for each bound, the largest first; verbose, how each
/// bound was found. Bounds overlap: they are compared with the time, never added up.
pub fn bars(rows: &mut Rows, report: &Measurement, style: &Style) {
    if report.bounds.is_empty() {
        return;
    }
    let time = report.throughput.as_ref().filter(|_| report.status == Status::Ok);
    let valid = report.bounds.iter().filter(|b| !b.refuted).map(least);
    // An unstable time has no bar, but the others are drawn beside it.
    let longest = report.throughput.as_ref().map(|t| time.map_or(t.high, |t| t.cycles));
    let scale = valid.chain(longest).fold(0.0, f64::max);
    rows.heading("cycles per iteration: measured, and lower bounds");
    // What is known of a bound has half of the page.
    let columns = match style.width {
        _ if style.narrow => NARROW,
        WIDTH.. => BAR,
        width => (width / 2).saturating_sub(31).clamp(NARROW, BAR),
    };
    let bar = |cycles: f64| drawn(cycles / scale, columns, style.ascii);
    if let Some(t) = time {
        rows.plain(format!("  {:<17}{:>8.3}  {}", "measured", t.cycles, bar(t.cycles)), "");
    }
    let mut bounds: Vec<&Bound> = report.bounds.iter().collect();
    bounds.sort_by(|a, b| a.refuted.cmp(&b.refuted).then(least(b).total_cmp(&least(a))));
    for bound in bounds {
        let is_verdict =
            !bound.refuted && report.hierarchy.bound.is_some_and(|v| explains(bound, v));
        let mark = if is_verdict { "<- explains the time; " } else { "" };
        let text = format!("{mark}{}", source(bound, time, style.verbose));
        let cycles = least(bound);
        let label = format!("  {:<17}{cycles:>8.3}  {}  ", bound.name, bar(cycles));
        rows.add(label, text, if is_verdict { Weight::Strong } else { Weight::Plain });
    }
}

/// What a bound allows at least: a sum of latencies that are ranges is as low as their low ends.
fn least(bound: &Bound) -> f64 {
    if bound.is_computed { bound.low } else { bound.cycles }
}

/// Whether `verdict` is the name of this bound. Slots are the width, measured with other
/// instructions; ports are measured and, where a table has them, computed.
fn explains(bound: &Bound, verdict: &str) -> bool {
    bound.name == verdict || (verdict == "issue-width" && bound.name == "slots")
}

/// How the bound was found: a word and its range, or everything; and that it is above the time.
fn source(bound: &Bound, time: Option<&Throughput>, verbose: bool) -> String {
    let range = match bound.low < bound.high {
        false => String::new(),
        true => format!(" ({:.3} to {:.3})", bound.low, bound.high),
    };
    let from = if bound.assumed { " from assumed latencies" } else { "" };
    let refuted = match () {
        () if bound.refuted => "refuted: above the measurement; ",
        // Less than its error, 5 % of a measured bound and 12 % of a computed one.
        () if time.is_some_and(|t| bound.low > t.high) => {
            "above the measurement, within its error; "
        }
        () => "",
    };
    let how = match verbose {
        true => format!("{range}; {}", bound.how).trim_start_matches("; ").trim_start().to_owned(),
        false => format!("{}{from}{range}", kind(&bound.how)),
    };
    format!("{refuted}{how}")
}

/// The word that the evidence begins with: `measured`, `computed`, `counted`.
fn kind(how: &str) -> &str {
    how.split([':', ' ', ',']).next().unwrap_or_default()
}

/// A bar of this share of the columns, padded.
fn drawn(share: f64, columns: usize, ascii: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    // A scale of zero gives no number.
    let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
    let eighths = (share * (8 * columns) as f64).round() as usize;
    let text = match ascii {
        true => "#".repeat((eighths + 4) / 8),
        false => "█".repeat(eighths / 8) + EIGHTHS[eighths % 8],
    };
    format!("{text:<columns$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(drawn(1.0, 24, true), "#".repeat(24));
        assert_eq!(drawn(0.25, 24, true).trim_end(), "#".repeat(6));
        assert_eq!(drawn(0.25, 24, false).trim_end(), "█".repeat(6));
        // A sixteenth of 24 columns: one and a half.
        assert_eq!(drawn(1.0 / 16.0, 24, false).trim_end(), "█▌");
        assert_eq!(drawn(2.0, 24, true), "#".repeat(24));
        assert_eq!(drawn(f64::NAN, 24, true).trim_end(), "");
    }
}
