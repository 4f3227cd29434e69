//! `tdtool tables identify`: which processor this is, by what, and what contradicts.

use crate::cli::global::Global;
use crate::cli::output::print;
use clap::{Args, ValueEnum};
use report::documents::doctor::identity;
use report::render::{doctor as render, json};
use std::path::PathBuf;
use std::process::ExitCode;
use tma::Result;

#[derive(Args)]
#[command(after_help = "\
With --cpuid FILE the processor is that of a dump: what `cpuid -r` prints, or rows
leaf,subleaf,eax,ebx,ecx,edx of hexadecimal numbers.")]
pub struct IdentifyArgs {
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Identify the processor of this dump instead
    #[arg(long, global = true, value_name = "FILE")]
    cpuid: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub fn run(global: &Global, args: &IdentifyArgs) -> Result<ExitCode> {
    let settings = global.settings()?;
    let mut document = identity(settings.machine(), settings.library)?;
    // Where several tables fit, the self-test was made to choose. One made here says nothing of a dump's processor.
    if (args.cpuid.is_none() || global.self_test_from.is_some())
        && let Some(answers) = settings.core()?.answers()
    {
        document.settle(answers.into(), settings.library)?;
    }
    print(&match args.format {
        Format::Text => render::identity_text(&document),
        Format::Json => json::pretty(&document)?,
    })?;
    Ok(ExitCode::SUCCESS)
}
