//! Prefetches that were put into the source and measured, as text.

use crate::documents::applied::{AppliedRow, TriedRow};
use crate::format::{several, source};
use crate::render::paired::change;
use std::fmt::Write as _;

/// What was tried at each place, and what is kept.
pub fn text(rows: &[AppliedRow]) -> String {
    let mut out = String::new();
    if !rows.is_empty() {
        let kept = rows.iter().filter(|row| row.kept).count() as u64;
        let places = several(rows.len() as u64, "place");
        let _ = writeln!(out, "\napplied: {} kept of {places}", several(kept, "prefetch"));
    }
    for row in rows {
        let place = source(row.file.as_ref(), row.line).unwrap_or_default();
        let name = row.function.as_deref().unwrap_or_default();
        let _ = writeln!(out, "{} {name} {place}", row.load);
        if let Some(statement) = &row.statement {
            let _ = writeln!(out, "  {statement}");
        }
        if let Some(copies) = row.unrolled {
            let _ = writeln!(
                out,
                "  iterations are those of the source: the compiler unrolled its loop {copies} times"
            );
        }
        for tried in &row.tried {
            let _ = writeln!(out, "  {} ahead: {}", tried.distance, gain(tried));
        }
        if let Some(confirmed) = &row.confirmed {
            let what = format!("{} ahead, {}", confirmed.distance, further(confirmed));
            let _ = writeln!(out, "  {what}: {}", gain(confirmed));
        }
        if let Some(words) =
            row.tried.iter().map(|one| one.words_not_compared).max().filter(|n| *n > 0)
        {
            let _ = writeln!(
                out,
                "  {} of the output differed from run to run, and were not compared",
                several(words, "word")
            );
        }
        let why = row.reason.as_deref().unwrap_or("not tried");
        let _ = match row.kept {
            true => writeln!(out, "  kept"),
            false => writeln!(out, "  not kept: {why}"),
        };
    }
    out
}

fn further(one: &TriedRow) -> String {
    format!("{} more runs of each", one.runs)
}

/// The time that it saves or costs.
fn gain(one: &TriedRow) -> String {
    let failed = one.failed.as_ref().map_or(String::new(), |why| format!("; {why}"));
    match one.time {
        Some(time) => format!("{} processor time{failed}", change(&time)),
        None => one.failed.clone().unwrap_or_else(|| "not measured".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_source_has_is_called_kept() {
        let row = |kept, reason: Option<&str>| AppliedRow {
            kept,
            reason: reason.map(str::to_owned),
            ..AppliedRow::default()
        };
        let rows = [row(true, None), row(false, Some("interrupted")), row(false, None)];
        let shown = text(&rows);
        let ends: Vec<&str> = shown.lines().filter(|line| line.starts_with("  ")).collect();
        assert_eq!(ends, ["  kept", "  not kept: interrupted", "  not kept: not tried"]);
    }
}
