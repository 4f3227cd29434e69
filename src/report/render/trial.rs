//! A program compared with its optimised copy, as text.

use crate::documents::diff::{DiffRow, Judgement};
use crate::documents::trial::{Executed, LEAST, Time, Trial, Verdict};
use crate::format::{self, command};
use crate::render::width::Page;
use crate::render::{diff, paired};
use std::fmt::Write as _;

/// The verdict, what it rests on, times and counts of both, and the code that they executed.
pub fn text(trial: &Trial, ascii: bool, page: Page) -> String {
    let mut out = page.fitted(format!("{}\n{}", verdict(trial), basis(trial)));
    out += &diff::render(&trial.compared, ascii, false, page);
    out += &page.fitted(trial.code.as_ref().map_or_else(String::new, executed));
    out
}

/// `faster: in the median of 10 rounds the optimised copy takes 8.3 % (7.1 to 9.4) less time`.
fn verdict(trial: &Trial) -> String {
    let change = &trial.change;
    let amount = change.paired.map_or_else(String::new, |of| paired::change(&of));
    let (time, beside) = match change.time {
        Time::Wall => ("time", ""),
        Time::Processor => ("processor time", "; that of wall time is not clear"),
    };
    let rounds = change.paired.map_or(0, |of| of.rounds);
    let takes = format!(
        "in the median of {rounds} rounds the optimised copy takes {amount} {time}{beside}"
    );
    match change.verdict {
        Verdict::Faster => format!("faster: {takes}"),
        Verdict::Slower => format!("no gain: {takes}"),
        Verdict::WithinNoise => format!("no gain: {takes}, within the noise"),
        Verdict::TooSmall => {
            let least = 100.0 * LEAST;
            format!("no gain: {takes}; below {least} % it may be where code and stack lie")
        }
        Verdict::TooFew => format!("not known: {takes}; less than 6 rounds tell no error"),
        Verdict::Unknown => "not known: the runs have no times".to_owned(),
    }
}

/// What was done.
fn basis(trial: &Trial) -> String {
    let mut out = format!("program: {}\n", trial.module);
    let _ = writeln!(out, "optimiser: {}, on a temporary copy", trial.optimiser);
    for words in &trial.trained {
        let _ = writeln!(out, "trained: {}", command(words));
    }
    let same =
        if trial.is_same_input { ", the input of the training: others may gain less" } else { "" };
    let _ = writeln!(out, "measured: {}{same}", command(&trial.measured));
    let exit = trial.exit.map_or(String::new(), |exit| format!(", exit status {}", exit.code()));
    let bytes = format::count(trial.output as f64);
    let _ = writeln!(out, "the same in both: {bytes} bytes of standard output{exit}");
    if !has_tree(trial) {
        out += "not measured: the top-down tree, as no PMU counts here\n";
    }
    out
}

fn has_tree(trial: &Trial) -> bool {
    let is_counted = |row: &DiffRow| row.judgement != Judgement::Absent;
    trial.compared.nodes.iter().any(is_counted)
}

/// Share of fitted counts that is worth a word, in percent.
const SOME: f64 = 0.1;

/// A table of the code that both executed.
fn executed([a, b]: &[Executed; 2]) -> String {
    let rows = [
        ("instructions", a.instructions, b.instructions),
        ("taken jumps", a.taken_jumps, b.taken_jumps),
        ("direct calls", a.calls, b.calls),
        ("lines of code (64 B)", a.lines as u64, b.lines as u64),
        ("  99 % of it in", a.hot_lines as u64, b.hot_lines as u64),
        ("pages of code (4 KiB)", a.pages as u64, b.pages as u64),
        ("  99 % of it in", a.hot_pages as u64, b.hot_pages as u64),
    ];
    let fitted = [a, b].map(|of| 100.0 * of.fitted);
    let is_exact = fitted.iter().all(|share| *share <= SOME);
    let title = if is_exact { "executed, counted" } else { "executed" };
    let mut out = format!("\n{title:<21}  {:>16}  {:>16}  {:>12}\n", "A", "B", "B - A");
    for (name, a, b) in rows {
        let change = match a {
            0 => String::new(),
            _ => format!("{:+.1} %", 100.0 * (b as f64 - a as f64) / a as f64),
        };
        let [a, b] = [a, b].map(|value| format::count(value as f64));
        let _ =
            writeln!(out, "{}", format!("{name:<21}  {a:>16}  {b:>16}  {change:>12}").trim_end());
    }
    if !is_exact {
        let _ = writeln!(
            out,
            "of these jumps and calls {:.1} % of A and {:.1} % of B are not exact",
            fitted[0], fitted[1]
        );
    }
    if a.unknown + b.unknown > 0 {
        let _ = writeln!(
            out,
            "blocks and jumps without a count: {} of A, {} of B",
            a.unknown, b.unknown
        );
    }
    out
}
