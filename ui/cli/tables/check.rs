//! `tdtool tables check [NAME…]`

use super::print;
use crate::cli::Global;
use clap::Args;
use std::fmt::Write as _;
use std::num::NonZero;
use std::process::ExitCode;
use std::thread;
use tma::Result;
use tma::tables::Library;
use tma::tables::validate::{Finding, Report, Severity, report};

#[derive(Args)]
pub struct CheckArgs {
    /// Microarchitectures [default: all]
    #[arg(value_name = "UARCH")]
    names: Vec<String>,
    /// List the notes, too: shared encodings, unused events, unusual thresholds
    #[arg(long)]
    notes: bool,
}

/// A line a table and a line a finding; exit status 1 if there is an error.
pub fn run(global: &Global, args: &CheckArgs) -> Result<ExitCode> {
    let library = global.library()?;
    let names: Vec<String> = if args.names.is_empty() {
        library.names().map(str::to_owned).collect()
    } else {
        args.names.iter().map(|n| n.to_lowercase()).collect()
    };
    let mut out = String::new();
    let mut bad = false;
    for (name, report) in names.iter().zip(reports(&library, &names)) {
        let Report { findings: found, counts } = report?;
        let failed = found.iter().any(|f| f.severity == Severity::Error);
        bad |= failed;
        let state = if failed { "ERRORS" } else { "ok" };
        let _ = writeln!(out, "{name:<8}  {state:<6}  {}{}", contents(counts), tally(&found));
        for finding in found.iter().filter(|f| args.notes || f.severity > Severity::Note) {
            let _ = writeln!(out, "  {finding}");
        }
    }
    print(&out)?;
    Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The reports on all tables, in order; the work is shared between the CPUs.
fn reports(library: &Library, names: &[String]) -> Vec<Result<Report>> {
    let one =
        |name: &String| library.text(name).map(|(text, _)| report(name, &text, library.texts()));
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = names.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> = names
            .chunks(share)
            .map(|part| (part, scope.spawn(move || part.iter().map(one).collect::<Vec<_>>())))
            .collect();
        parts
            .into_iter()
            .flat_map(|(part, thread)| {
                // A thread that failed is not worth more than doing its part here.
                thread.join().unwrap_or_else(|_| part.iter().map(one).collect())
            })
            .collect()
    })
}

fn contents([nodes, bottlenecks, infos, events]: [usize; 4]) -> String {
    format!("{nodes} nodes, {bottlenecks} bottlenecks, {infos} infos, {events} events")
}

fn tally(found: &[Finding]) -> String {
    [(Severity::Error, "errors"), (Severity::Warning, "warnings"), (Severity::Note, "notes")]
        .into_iter()
        .map(|(severity, what)| (found.iter().filter(|f| f.severity == severity).count(), what))
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!(", {n} {}", if n == 1 { &what[..what.len() - 1] } else { what }))
        .collect()
}
