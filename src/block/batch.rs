//! Thousands of blocks: rows in, rows out, in order.

use super::{Options, Profiler, Report, rejected};
use crate::Result;
use crate::code::{Block, parse_hex};

/// The blocks of a file: the first column of each row. A first row without any hexadecimal block
/// is a header; empty lines are no rows.
pub fn inputs(text: &str) -> Vec<String> {
    let mut rows: Vec<String> = text
        .lines()
        .filter(|l| !l.trim().is_empty())
        .map(|l| first_column(l).trim().to_owned())
        .collect();
    if rows.first().is_some_and(|r| r.eq_ignore_ascii_case("hex") || is_header(r)) {
        rows.remove(0);
    }
    rows
}

fn is_header(field: &str) -> bool {
    field.chars().any(|c| c.is_ascii_alphabetic() && !c.is_ascii_hexdigit() && c != 'x')
        && field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ' ')
}

fn first_column(line: &str) -> &str {
    match line.strip_prefix('"') {
        Some(rest) => rest.split('"').next().unwrap_or_default(),
        None => line.split(',').next().unwrap_or_default(),
    }
}

/// One row's report: a malformed row is rejected.
///
/// # Errors
/// The sandbox cannot be started.
pub fn measure_row(profiler: &mut Profiler, row: &str) -> Result<Report> {
    match parse_hex(row).and_then(|bytes| Block::decode(&bytes)) {
        Ok(block) => profiler.measure(&block),
        Err(error) => Ok(rejected(row, error.to_string())),
    }
}

/// Measures `rows` on `jobs` threads and gives each report to `each`, in order. `each` returns
/// whether to go on.
///
/// # Errors
/// The sandbox cannot be started.
pub fn run(
    rows: &[String],
    options: &Options,
    jobs: usize,
    mut each: impl FnMut(usize, Report) -> Result<bool>,
) -> Result<()> {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    let next = AtomicUsize::new(0);
    let written = AtomicUsize::new(0);
    let jobs = jobs.max(1);
    std::thread::scope(|scope| {
        // A bounded channel, and workers that do not run far ahead of the slowest row.
        let (sender, receiver) = mpsc::sync_channel(4 * jobs);
        for job in 0..jobs {
            let sender = sender.clone();
            let (next, written) = (&next, &written);
            // Rows have no columns for bounds.
            let mut options = Options { explain: false, ..options.clone() };
            if jobs > 1 {
                options.cpu = Some(job);
            }
            scope.spawn(move || {
                let mut profiler = Profiler::new(options);
                loop {
                    let row = next.fetch_add(1, Ordering::SeqCst);
                    if row >= rows.len() {
                        return;
                    }
                    while row > written.load(Ordering::SeqCst).saturating_add(64 * jobs) {
                        std::thread::yield_now();
                    }
                    let report = measure_row(&mut profiler, &rows[row]);
                    let failed = report.is_err();
                    if sender.send((row, report)).is_err() || failed {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let stop = || {
            next.store(rows.len(), Ordering::SeqCst);
            written.store(rows.len(), Ordering::SeqCst);
        };
        let mut waiting = BTreeMap::new();
        for (row, report) in receiver {
            let report = report.inspect_err(|_| stop())?;
            waiting.insert(row, report);
            while let Some(report) = waiting.remove(&written.load(Ordering::SeqCst)) {
                let row = written.load(Ordering::SeqCst);
                if !each(row, report).inspect_err(|_| stop())? {
                    stop();
                    return Ok(());
                }
                written.store(row + 1, Ordering::SeqCst);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::inputs;

    #[test]
    fn the_first_column_counts_and_a_header_is_none() {
        assert_eq!(inputs("hex,sources\n4801d8,gcc\n\n\"48 01 d8\",x\n"), ["4801d8", "48 01 d8"]);
        assert_eq!(inputs("4801d8\n\\x90\n"), ["4801d8", "\\x90"]);
    }
}
