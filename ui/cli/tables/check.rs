//! `tdtool tables check [UARCH…]`

use crate::cli::global::Global;
use crate::cli::output::print_text;
use clap::Args;
use engine::documents::table_check::{Checked, check};
use engine::render::tables;
use std::process::ExitCode;
use tma::Result;

#[derive(Args)]
pub struct CheckArgs {
    /// Microarchitectures [default: all]
    #[arg(value_name = "UARCH")]
    names: Vec<String>,
    /// Include notes: shared encodings, unused events, unusual thresholds
    #[arg(long)]
    notes: bool,
}

/// Prints what validation found; exit status 1 if there is an error.
pub fn run(global: &Global, args: &CheckArgs) -> Result<ExitCode> {
    let library = global.settings()?.library;
    let names: Vec<String> = if args.names.is_empty() {
        library.names().map(str::to_owned).collect()
    } else {
        args.names.iter().map(|n| n.to_lowercase()).collect()
    };
    let checked = check(library, &names)?;
    print_text(tables::check(&checked, args.notes))?;
    let bad = checked.iter().any(Checked::has_errors);
    Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
