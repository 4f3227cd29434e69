//! `tdtool tables check [NAME…]`

use super::print;
use crate::cli::Global;
use clap::Args;
use std::fmt::Write as _;
use std::process::ExitCode;
use tdtool::Result;
use tdtool::tables::validate::{Finding, Severity, findings};
use tdtool::tables::{NodeKind, Table};

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
    for name in &names {
        let (text, origin) = library.text(name)?;
        let found = findings(name, &text);
        // What `parse` refuses has an error among the findings; its counts do not matter.
        let counts = Table::parse(&text, &origin).map(|t| contents(&t)).unwrap_or_default();
        let failed = found.iter().any(|f| f.severity == Severity::Error);
        bad |= failed;
        let state = if failed { "ERRORS" } else { "ok" };
        let _ = writeln!(out, "{name:<8}  {state:<6}  {counts}{}", tally(&found));
        for finding in found.iter().filter(|f| args.notes || f.severity > Severity::Note) {
            let _ = writeln!(out, "  {finding}");
        }
    }
    print(&out)?;
    Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn contents(table: &Table) -> String {
    let of = |kind| table.of_kind(kind).count();
    format!(
        "{} nodes, {} bottlenecks, {} infos, {} events",
        of(NodeKind::Tree),
        of(NodeKind::Bottleneck),
        of(NodeKind::Info),
        table.events.len()
    )
}

fn tally(found: &[Finding]) -> String {
    [(Severity::Error, "errors"), (Severity::Warning, "warnings"), (Severity::Note, "notes")]
        .into_iter()
        .map(|(severity, what)| (found.iter().filter(|f| f.severity == severity).count(), what))
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!(", {n} {}", if n == 1 { &what[..what.len() - 1] } else { what }))
        .collect()
}
