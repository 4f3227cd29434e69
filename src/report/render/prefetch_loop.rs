//! Iterations of a loop as text: trips, a drawn histogram, peaks.

use super::width::Page;
use crate::documents::prefetch::LoopRow;
use std::fmt::Write as _;

/// Columns of the drawn histogram, also on a narrow page.
const COLUMNS: usize = 48;
const NARROW: usize = 16;
/// Share of the iterations that are drawn; the slowest rest would squeeze the others together.
const DRAWN: f64 = 0.995;
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 9] = [' ', '.', '.', ':', ':', '+', '+', '#', '#'];

/// Adds the lines of a loop.
pub(super) fn iterations(one: &LoopRow, ascii: bool, page: Page, out: &mut String) {
    let _ = write!(out, "  loop {}: {}", one.head, trips(one));
    if let Some(run) = one.runs_on {
        let _ = write!(out, ", but the addresses go on by a stride for {run:.0} executions");
    }
    if one.iterations == 0 {
        out.push('\n');
        return;
    }
    let wrong = match one.mispredicted {
        0 => String::new(),
        n => format!(" ({n} more with a misprediction)"),
    };
    let _ = writeln!(out, ", {} timed iterations{wrong}", one.iterations);
    let wide = if page.is_below(80) { NARROW } else { COLUMNS };
    let Some((drawing, low, high)) = draw(one, ascii, wide) else { return };
    let modes: Vec<String> = one
        .modes
        .iter()
        .map(|mode| format!("{} ({:.0} %)", mode.cycles, 100.0 * mode.share))
        .collect();
    let modes = if modes.is_empty() { "none".to_owned() } else { modes.join(", ") };
    let _ = writeln!(out, "    {low} {drawing} {high} cycles, peaks: {modes}");
}

fn trips(one: &LoopRow) -> String {
    match (one.trips, one.trips_mean, one.trips_at_least) {
        (Some(trips), _, _) => format!("{trips} trips each time"),
        (_, Some(mean), _) if mean < 100.0 => format!("{mean:.1} trips"),
        (_, Some(mean), _) => format!("{mean:.0} trips"),
        (_, _, Some(least)) => format!("≥ {:.0} trips", least.floor()),
        _ => "trips unknown".to_owned(),
    }
}

/// Iterations by cycles, and the ends of the axis.
fn draw(one: &LoopRow, ascii: bool, wide: usize) -> Option<(String, u64, u64)> {
    let low = one.histogram.first()?.0;
    let mut below = 0;
    let end = one.histogram.iter().find(|(_, n)| {
        below += n;
        below as f64 >= DRAWN * one.iterations as f64
    });
    let highest = one.modes.last().map_or(0, |mode| mode.cycles);
    let high = end.map_or(low, |(cycles, _)| *cycles).max(highest).max(low + 1);
    let mut columns = vec![0u64; wide];
    for (cycles, n) in one.histogram.iter().filter(|(cycles, _)| *cycles <= high) {
        let column = (cycles - low) as usize * (wide - 1) / (high - low) as usize;
        columns[column.min(wide - 1)] += n;
    }
    let most = columns.iter().copied().max().unwrap_or(1).max(1);
    let signs = if ascii { ASCII } else { BLOCKS };
    let sign = |n: &u64| match n {
        0 => signs[0],
        // Rare ones would be too low to be seen: heights are by the square root.
        n => signs[((*n as f64 / most as f64).sqrt() * 8.0).ceil().clamp(1.0, 8.0) as usize],
    };
    Some((format!("|{}|", columns.iter().map(sign).collect::<String>()), low, high))
}
