//! `tdtool tables check [UARCH…]`

use crate::cli::global::Global;
use crate::cli::output::print_text;
use crate::cli::quoted::quoted;
use clap::Args;
use report::documents::tables::{Checked, check};
use report::render::tables;
use std::path::Path;
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
    let checked =
        check(library, &names).map_err(|error| match args.names.iter().find_map(in_folder) {
            Some(command) => error.hint(command),
            None => error,
        })?;
    print_text(tables::check(&checked, args.notes))?;
    let bad = checked.iter().any(Checked::has_errors);
    Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// How a table in a file is checked: by its name, with its folder.
fn in_folder(name: &String) -> Option<String> {
    let path = Path::new(name);
    let is_file = path.extension().is_some_and(|end| end == "toml") || path.is_file();
    let stem = path.file_stem().filter(|_| is_file)?.to_string_lossy();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).to_string_lossy();
    let words = ["tables", "check", stem.as_ref(), "--tables", folder.as_ref()];
    Some(format!("a file is checked by its table's name: `tdtool {}`", quoted(&words)))
}
