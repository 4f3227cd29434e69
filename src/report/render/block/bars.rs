//! The bounds beside the measurement, as bars on one scale.

use super::layout::WIDTH;
use super::rows::{Rows, Style, Weight};
use bench::Class;
use bench::bound_names::SLOTS;
use bench::explain::{Explained, explained, least};
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
    // The text of a bound has half of the page.
    let columns = match style.width {
        _ if style.narrow => NARROW,
        WIDTH.. => BAR,
        width => (width / 2).saturating_sub(31).clamp(NARROW, BAR),
    };
    // The open range is shaded where that shows.
    let shades = |b: &Bound| (b.high.min(scale) - least(b)) / scale * columns as f64 >= 1.0;
    let is_vague = |b: &Bound| !b.refuted && b.is_computed && shades(b);
    rows.heading(match report.bounds.iter().any(is_vague) {
        true => "cycles per iteration: measured, and lower bounds (shaded: the rest of a range)",
        false => "cycles per iteration: measured, and lower bounds",
    });
    let bar = |[low, high]: [f64; 2]| drawn([low / scale, high / scale], columns, style.ascii);
    if let Some(t) = time {
        let bar = bar([t.cycles; 2]);
        rows.plain(format!("  {:<17}{:>8.3}  {bar}", "measured", t.cycles), "");
    }
    let mut bounds: Vec<&Bound> = report.bounds.iter().collect();
    bounds.sort_by(|a, b| a.refuted.cmp(&b.refuted).then(least(b).total_cmp(&least(a))));
    for bound in bounds {
        let is_verdict = report.hierarchy.bound.is_some_and(|v| is_named(bound, v));
        let (mark, weight) = match (bound.refuted, is_verdict) {
            (true, _) => (String::new(), Weight::Faint),
            (_, true) => (mark(bound, report.throughput.as_ref()), Weight::Strong),
            _ => (String::new(), Weight::Plain),
        };
        let text = format!("{mark}{}", source(bound, time, style.verbose));
        let cycles = least(bound);
        let bar = bar(match (bound.refuted, is_vague(bound)) {
            (true, _) => [0.0; 2],
            (_, true) => [cycles, bound.high],
            _ => [cycles; 2],
        });
        rows.add(format!("  {:<17}{cycles:>8.3}  {bar}  ", bound.name), text, weight);
    }
}

/// Whether `verdict` is about this bound. Slots are the width, measured with other
/// instructions; ports are measured and, where a table has them, computed.
fn is_named(bound: &Bound, verdict: Class) -> bool {
    bound.name == verdict.name() || (verdict == Class::IssueWidth && bound.name == SLOTS)
}

/// Cycles that the bound of the verdict explains: its range may reach the time in part only.
fn mark(bound: &Bound, time: Option<&Throughput>) -> String {
    match time.map(|time| explained(bound, time)) {
        None => "<- bounds the time; ".to_owned(),
        Some(Explained::All) => "<- explains the time; ".to_owned(),
        Some(Explained::PerhapsAll(cycles)) => {
            format!("<- bounds the time; explains {cycles:.3} cycles of it, perhaps all; ")
        }
        Some(Explained::Part(cycles)) => {
            format!("<- bounds the time; explains {cycles:.3} cycles of it; ")
        }
    }
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

/// A bar up to the first share of the columns, shaded up to the second, padded.
fn drawn(shares: [f64; 2], columns: usize, ascii: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    // A scale of zero gives no number.
    let eighths = shares.map(|share| match share.is_nan() {
        true => 0,
        false => (share.clamp(0.0, 1.0) * (8 * columns) as f64).round() as usize,
    });
    let (mut text, shade) = match ascii {
        true => ("#".repeat((eighths[0] + 4) / 8), "-"),
        false => ("█".repeat(eighths[0] / 8) + EIGHTHS[eighths[0] % 8], "░"),
    };
    let end = (eighths[1] + 4) / 8;
    text += &shade.repeat(end.saturating_sub(text.chars().count()));
    format!("{text:<columns$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        let drawn = |low, high, ascii| drawn([low, high], 24, ascii).trim_end().to_owned();
        assert_eq!(drawn(1.0, 1.0, true), "#".repeat(24));
        assert_eq!(drawn(0.25, 0.25, true), "#".repeat(6));
        assert_eq!(drawn(0.25, 0.25, false), "█".repeat(6));
        // A sixteenth of 24 columns: one and a half.
        assert_eq!(drawn(1.0 / 16.0, 1.0 / 16.0, false), "█▌");
        assert_eq!(drawn(2.0, 2.0, true), "#".repeat(24));
        assert_eq!(drawn(f64::NAN, f64::NAN, true), "");
        assert_eq!(drawn(0.25, 0.5, true), "######------");
        assert_eq!(drawn(1.0 / 16.0, 4.0, false), format!("█▌{}", "░".repeat(22)));
    }
}
