//! Runs the microbenchmark that the command line names.

use super::arguments::{Effort, Format, MicrobenchArgs, What};
use super::calibrate::calibrate;
use crate::cli::code::named;
use crate::cli::global::Global;
use crate::cli::output::{page, print};
use bench::Status;
use bench::microbench::{self, Catalog, Multiset};
use engine::core_model::{latencies, throughput};
use report::render::{json, microbench as render};
use std::process::ExitCode;
use tma::{Error, Result};

pub fn run(global: &Global, args: MicrobenchArgs) -> Result<ExitCode> {
    let effort = &args.effort;
    // Not checked by clap, which would also refuse `--format csv` before the command.
    if args.command.is_some() && (args.forms.is_some() || args.from.is_some() || args.calibrate) {
        return Err(Error::usage("list, latency and throughput take no other forms").hint(
            "`tdtool microbench latency FORM`, `tdtool microbench throughput FORM` or `tdtool microbench FORM`",
        ));
    }
    match &args.command {
        Some(What::List { pattern, refused }) => list(pattern, *refused, effort.format),
        Some(What::Latency { form }) => run_latency(global, form, effort),
        Some(What::Throughput { form }) => run_throughput(global, &Multiset::parse(form)?, effort),
        None if args.calibrate => calibrate(&global.settings()?, &args),
        None => run_throughput(global, &multiset(&args)?, effort),
    }
}

fn multiset(args: &MicrobenchArgs) -> Result<Multiset> {
    match (&args.from, &args.forms) {
        (Some(block), _) => Multiset::of(&named::only(block)?),
        (_, Some(forms)) => Multiset::parse(forms),
        _ => Err(Error::usage("no instruction form is given")),
    }
}

fn run_throughput(global: &Global, multiset: &Multiset, effort: &Effort) -> Result<ExitCode> {
    let model = global.settings()?.core_model()?;
    let report = throughput(&mut effort.bench(model.core.clone()), &model, multiset)?;
    print(&match effort.format {
        Format::Text => page(None).fitted(render::render(&report)),
        Format::Json => json::pretty(&report)?,
        Format::Csv => format!("{}\n{}\n", render::HEADER, render::row(&report.result)),
    })?;
    Ok(code([report.result.status].into_iter()))
}

fn run_latency(global: &Global, form: &str, effort: &Effort) -> Result<ExitCode> {
    let form = Catalog::all().find(form)?;
    let model = global.settings()?.core_model()?;
    let found = latencies(&mut effort.bench(model.core.clone()), &model, form)?;
    print(&match effort.format {
        Format::Text => page(None).fitted(render::render_latencies(&found)),
        Format::Json => json::pretty(&found)?,
        Format::Csv => {
            format!("{}\n{}", render::LATENCY_HEADER, render::latency_rows(&found.result))
        }
    })?;
    Ok(code(found.result.latencies.iter().map(|l| l.status)))
}

fn list(pattern: &str, refused: bool, format: Format) -> Result<ExitCode> {
    let listed = Catalog::all().list(pattern, refused);
    if listed.is_empty() {
        let refused =
            if refused { "" } else { "; --refused adds those that cannot be measured here" };
        return Err(Error::failed(format!("no form matches `{pattern}`"))
            .hint(format!("use * in the pattern, for example 'VADDPD_*'{refused}")));
    }
    print(&match format {
        Format::Text => page(None).fitted(render::render_list(&listed)),
        Format::Json => json::pretty(&microbench::list_document(&listed))?,
        Format::Csv => render::list_rows(&listed),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Success if every measurement gave a number.
fn code(mut all: impl Iterator<Item = Status>) -> ExitCode {
    match all.all(|status| matches!(status, Status::Ok | Status::Unstable)) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
