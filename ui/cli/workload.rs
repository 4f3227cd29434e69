//! `tdtool workload list|run`: built-in programs with a known bottleneck.

use super::files::{page, print};
use super::options::TextOrJson;
use clap::{Args, Subcommand};
use report::documents::microbench::{Catalog, Run};
use report::render::{json, workload as render};
use std::process::ExitCode;
use tma::Result;
use workload::Options;

#[derive(Args)]
pub struct WorkloadArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the programs, or describe one
    List {
        /// Describe this program in full
        name: Option<String>,
        /// Output format
        #[arg(long, value_enum, default_value = "text")]
        format: TextOrJson,
    },
    /// Run a program and print its figures
    Run(RunArgs),
}

#[derive(Args)]
struct RunArgs {
    /// Program; `tdtool workload list` lists them
    name: String,
    /// Stop after S seconds, fractions allowed [default: 2 without --repeats]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    seconds: Option<f64>,
    /// Stop after N repeats; with --seconds, whichever comes first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    repeats: Option<u64>,
    /// Size in bytes (K, M, G allowed) or matrix rows [default: see list NAME]
    #[arg(long, allow_hyphen_values = true)]
    size: Option<String>,
    /// Run N copies at the same time, each in a thread with its own data
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    copies: Option<u64>,
    /// Run the same loop without the bottleneck, for comparison
    #[arg(long)]
    control: bool,
    /// Output format of the summary
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
}

pub fn run(args: WorkloadArgs) -> Result<ExitCode> {
    print(&match args.action {
        Action::List { name, format } => list(name.as_deref(), format)?,
        Action::Run(args) => run_one(&args)?,
    })?;
    Ok(ExitCode::SUCCESS)
}

fn list(name: Option<&str>, format: TextOrJson) -> Result<String> {
    let chosen = match name {
        Some(name) => std::slice::from_ref(workload::find(name)?),
        None => workload::list(),
    };
    Ok(match (format, name) {
        (TextOrJson::Json, _) => json::pretty(&Catalog::new(chosen))?,
        (TextOrJson::Text, Some(_)) => {
            page(None).fitted(chosen.iter().map(render::description).collect())
        }
        (TextOrJson::Text, None) => render::table(chosen, page(None)),
    })
}

fn run_one(args: &RunArgs) -> Result<String> {
    let size = args.size.as_deref().map(workload::parse_size).transpose()?;
    let (seconds, repeats, control) = (args.seconds, args.repeats, args.control);
    let options = Options { seconds, repeats, size, control, copies: args.copies };
    let summary = workload::run(&args.name, &options)?;
    Ok(match args.format {
        TextOrJson::Json => json::pretty(&Run::new(&summary))?,
        TextOrJson::Text => page(None).fitted(render::summary(&summary)),
    })
}
