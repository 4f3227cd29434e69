//! `tdtool branches`: analyses the branch stacks of a recording.

use super::files::{page, write_or_print, write_or_print_bytes};
use super::recordings::{SearchArgs, present, reading};
use crate::message;
use clap::{Args, ValueEnum};
use flate2::Compression;
use flate2::write::GzEncoder;
use report::documents::branches::{Branches, EventRow};
use report::render::{branches, json};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use tma::{Error, Result};

#[derive(Args)]
pub struct BranchesArgs {
    /// Recordings with branches: perf.data, sessions, text of perf script, …
    ///
    /// By content: perf.data of `perf record -b`; sessions; the text of `perf script -F +brstack`
    /// (also brstackinsn, and --itrace=b of Intel PT); traces of
    /// `valgrind --tool=lackey --trace-mem=yes`; counts of AutoFDO (text) and of
    /// `llvm-profgen --skip-symbolization`. Texts need --binary.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Only the event of this number over all files, from 0 [default: all]
    #[arg(long, value_name = "N")]
    event_number: Option<usize>,
    #[command(flatten)]
    search: SearchArgs,
    /// Show N branches, blocks and loops as text, and hard branches
    #[arg(short, value_name = "N", default_value = "10")]
    n: usize,
    /// Export this module, by path or file name [default: that with most branches]
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
    /// AutoFDO's text profile of one module
    Autofdo,
    /// BOLT's pre-aggregated profile of one module (`perf2bolt -pa`)
    Bolt,
    /// pprof's profile of one event, compressed
    Pprof,
}

/// How what is read here is made.
const MAKE: &str = "to record branches: `tdtool record --branches -o FILE -- COMMAND`, or perf record -b; \
                    without a PMU: `tdtool count --branches -- COMMAND`";

pub fn run(args: &BranchesArgs) -> Result<ExitCode> {
    present(&args.files, MAKE)?;
    reading(&args.files, || report(args))
}

fn report(args: &BranchesArgs) -> Result<ExitCode> {
    let search = args.search.paths()?;
    let document = engine::branches::branches(&args.files, args.event_number, &search)?;
    if !matches!(args.format, Format::Text | Format::Json) {
        // They may say that the recording is damaged.
        document.notes.iter().for_each(|text| message::note(text));
    }
    let text = match args.format {
        Format::Text => branches::text(&document, args.n, page(args.output.as_deref())),
        Format::Json => json::pretty(&document)?,
        Format::Csv => branches::csv(&document),
        Format::Profgen | Format::Bolt | Format::Autofdo => {
            one_event(&document, "a profile for another tool")?;
            let module = engine::branches::module(&document, args.module.as_deref())?;
            // Without the program the addresses would be offsets in its file.
            let program = engine::branches::program(&document, &module, &search)?;
            match args.format {
                Format::Profgen => branches::unsymbolized(&document, &module),
                Format::Bolt => branches::bolt(&document, &module),
                _ => branches::autofdo(&document, &module, &program),
            }
        }
        Format::Pprof => {
            write_or_print_bytes(args.output.as_deref(), &compressed(&document)?, &args.files)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    write_or_print(args.output.as_deref(), &text, &args.files)?;
    Ok(ExitCode::SUCCESS)
}

/// The only event: counts of several are never added up.
fn one_event<'a>(document: &'a Branches, what: &str) -> Result<&'a EventRow> {
    let [event] = &document.events[..] else {
        let numbers: Vec<String> =
            document.events.iter().map(|e| format!("{} {}", e.event, e.name)).collect();
        return Err(Error::failed(format!("{what} holds one event"))
            .because(format!("there are several: {}", numbers.join(", ")))
            .hint("choose one with --event-number"));
    };
    Ok(event)
}

/// The profile of the only event.
fn compressed(document: &Branches) -> Result<Vec<u8>> {
    let event = one_event(document, "a pprof profile")?;
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(&branches::pprof(document, event))
        .and_then(|()| out.finish())
        .map_err(|e| Error::failed("cannot compress the profile").because(e))
}
