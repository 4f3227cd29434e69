//! `tdtool branches`: what the branch stacks of a recording tell.

use super::output::print;
use clap::{Args, ValueEnum};
use engine::documents::branches::Branches;
use engine::render::{branches, json};
use profile::files::SearchPaths;
use std::path::PathBuf;
use std::process::ExitCode;
use tma::{Error, Result};

#[derive(Args)]
pub struct BranchesArgs {
    /// Recording with branch stacks: perf.data of `perf record -b`, or a session
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only the event of this number, from 0 [default: all with branch stacks]
    #[arg(long, value_name = "N")]
    event_number: Option<usize>,
    /// Look for the recorded binaries under DIR first; repeatable
    #[arg(long, value_name = "DIR")]
    symfs: Vec<PathBuf>,
    /// A recorded program, known by its build-id or file name; repeatable
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Show N branches, blocks and loops as text
    #[arg(short, value_name = "N", default_value = "10")]
    n: usize,
    /// For profgen: the module, by path or file name [default: that with most branches]
    #[arg(long, value_name = "NAME")]
    module: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write to FILE instead
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
    /// llvm-profgen's unsymbolized profile of one module
    Profgen,
}

pub fn run(args: &BranchesArgs) -> Result<ExitCode> {
    let search = SearchPaths {
        roots: args.symfs.clone(),
        programs: args.binary.clone(),
        ..SearchPaths::default()
    };
    let document = engine::branches::branches(&args.file, args.event_number, &search)?;
    let text = match args.format {
        Format::Text => branches::text(&document, args.n),
        Format::Json => json::pretty(&document)?,
        Format::Csv => branches::csv(&document),
        Format::Profgen => branches::unsymbolized(&document, &module(args, &document)?),
    };
    match args.output.as_ref().filter(|path| path.as_os_str() != "-") {
        Some(path) => std::fs::write(path, text).map_err(|e| {
            Error::failed(format!("cannot write {}", path.display()))
                .because(e)
                .hint("choose another place with --output")
        })?,
        None => print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The module that is exported.
fn module(args: &BranchesArgs, document: &Branches) -> Result<String> {
    let mut all = document.edges.iter().map(|edge| edge.module.as_str());
    let found = match &args.module {
        None => all.next(),
        Some(name) => all.find(|own| own == name || own.rsplit('/').next() == Some(name)),
    };
    found.map(str::to_owned).ok_or_else(|| {
        Error::failed("no branch of that module was recorded")
            .hint("--format json lists the modules of all branches")
    })
}
