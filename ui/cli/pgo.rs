//! `tdtool pgo`: a profile for optimisers from exact counts of a command, or of what earlier runs left.

use super::files::{page, write_or_print};
use super::measure::exit_code;
use super::options::Global;
use super::pgo_try::{Asked, NOWHERE, TryArgs, keeping};
use super::progress::{self, Progress};
use super::recordings::{present, reading};
use crate::config::by_build_id;
use crate::message;
use clap::builder::ArgPredicate;
use clap::{Args, ValueEnum};
use engine::count::{CountAsk, counted};
use engine::pgo::bolt::installed as found;
use engine::pgo::{Inputs, Profile, Recorded, check_map, place_blocks, sample_profile, unmapped};
use engine::steps::Callback;
use pmu::Command;
use profile::files::{Program, SearchPaths};
use report::documents::count::Count;
use report::documents::pgo::Pgo;
use report::files::{check_place, is_stdout};
use report::render::{branches, json, pgo};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tma::shell::quoted;
use tma::{Error, Result};

#[derive(Args)]
pub struct PgoArgs {
    /// Write the profile to FILE
    #[arg(
        long,
        short,
        value_name = "FILE",
        required = false,
        required_unless_present = "attempt",
        default_value_if("attempt", ArgPredicate::IsPresent, NOWHERE)
    )]
    output: PathBuf,
    /// What reads the profile
    #[arg(long = "for", value_enum, value_name = "TOOL", default_value = "bolt")]
    reader: Reader,
    /// Program or library that is optimised [default: the command's own program]
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
    /// Record targets of indirect jumps and calls: one run more (output repeated)
    #[arg(long, requires = "command")]
    targets: bool,
    /// Count in windows, a fifth of the time: for runs of over 10 s
    #[arg(long, requires = "command", conflicts_with = "attempt")]
    windows: bool,
    /// Count a running process for a while instead of a command
    #[arg(short, long, value_name = "PID", value_parser = super::measure::pid, conflicts_with_all = ["command", "attempt"])]
    pid: Option<i32>,
    /// With -p: for how long [default: 10]
    #[arg(long, alias = "duration", value_name = "N", value_parser = super::count::seconds, requires = "pid")]
    seconds: Option<Duration>,
    /// Add an INPUT to the counts of the command; repeatable
    #[arg(long, value_name = "INPUT")]
    merge: Vec<PathBuf>,
    /// Earlier runs: counts, or recordings with branch stacks
    ///
    /// Counts of `tdtool count --format json`; else what `tdtool branches` reads: perf.data of
    /// `perf record -b`, sessions of `tdtool record --branches`, …
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    attempt: TryArgs,
    /// The command: a typical run
    #[arg(last = true, required_unless_present_any = ["merge", "inputs", "pid"], value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Reader {
    /// BOLT, which reorders a linked program: pre-aggregated profile
    Bolt,
    /// clang and rustc: sample profile, made by llvm-profgen, which must be installed
    Clang,
    /// llvm-profgen: unsymbolized profile
    Profgen,
    /// AutoFDO's create_llvm_prof and create_gcov, for clang and gcc: text profile
    Autofdo,
    /// clang, as of Propeller: blocks in order (-fbasic-block-sections=list=)
    Propeller,
    /// lld: symbols in order
    Lld,
    /// Other programs: counts, each with how it is known
    Json,
    /// tdtool: counts of the run with its recorded targets, as an INPUT
    Counts,
}

/// How long a process is counted.
const WINDOW: Duration = Duration::from_secs(10);

/// How what is read here is made.
const MAKE: &str = "to count a run: `tdtool pgo -o FILE -- COMMAND`; to record branches: \
                    `tdtool record --branches -o FILE -- COMMAND`, or perf record -b";

pub fn run(global: &Global, args: &PgoArgs) -> Result<ExitCode> {
    let files = [&args.inputs[..], &args.merge[..]].concat();
    if args.reader == Reader::Counts && !files.is_empty() {
        return Err(Error::usage("--for counts is of one run")
            .hint("leave out --merge and INPUT: a profile is made of several such documents"));
    }
    if args.reader == Reader::Clang && found("llvm-profgen").is_none() {
        return Err(Error::failed("llvm-profgen is not installed")
            .because("it makes the profile of a compiler")
            .hint("install it with LLVM, or write what it reads with `--for profgen`"));
    }
    check_place(&args.output, &files, "--output")?;
    present(&files, MAKE)?;
    let inputs = reading(&files, || Inputs::of(&files))?;
    let is_counted = !args.command.is_empty() || args.pid.is_some();
    if !inputs.recordings.is_empty() && !is_counted {
        let mut recorded = reading(&files, || recorded(args, &files))?;
        place(args.reader, &mut recorded.document)?;
        let text = recorded_text(args.reader, &recorded)?;
        write(args, &files, &text, &recorded.document)?;
        return Ok(ExitCode::SUCCESS);
    }
    inputs.only_counts()?;
    if args.attempt.is_given() {
        if args.reader != Reader::Bolt {
            return Err(Error::usage("--try compares what llvm-bolt makes")
                .hint("leave out --for, or make a profile with it without --try"));
        }
        let asked = Asked {
            command: &args.command,
            module: args.module.clone(),
            merged: inputs.counts,
            targets: args.targets,
            output: &args.output,
        };
        return args.attempt.run(global, asked);
    }
    let mut counts = inputs.counts;
    let stdout = pmu::Stdout::beside(is_stdout(&args.output));
    let command = Command { argv: args.command.clone(), stdout, ..Command::default() };
    let command = if args.targets { command.run_again() } else { command };
    let mut code = 0;
    if is_counted {
        if args.reader == Reader::Propeller {
            check_map(&command, args.module.as_deref())?;
        }
        let (document, status) = count(args, &command)?;
        if let Some(signal) = document.interrupted {
            return Ok(interrupted(signal));
        }
        code = status;
        counts.push(document);
    }
    let mut profile = Profile::of(&counts, args.module.as_deref())?;
    if args.targets
        && let Some(signal) = profile.record_targets(&command)?
    {
        return Ok(interrupted(signal));
    }
    if args.reader == Reader::Counts {
        let run = counts.pop().map(|run| Count { targets: profile.targets(), ..run });
        write_or_print(Some(&args.output), &json::pretty(&run)?, &files)?;
        if !is_stdout(&args.output) {
            let make = [
                "tdtool".as_ref(),
                "pgo".as_ref(),
                "-o".as_ref(),
                "FILE".as_ref(),
                args.output.as_os_str(),
            ];
            message::remedy(&format!("a profile of it, or of several: `{}`", quoted(&make)));
        }
        return Ok(exit_code(code));
    }
    let mut document = profile.document();
    place(args.reader, &mut document)?;
    write(args, &files, &text(args.reader, &document)?, &document)?;
    Ok(exit_code(code))
}

/// The profile of recordings.
fn recorded(args: &PgoArgs, files: &[PathBuf]) -> Result<Recorded> {
    let search = SearchPaths { caches: by_build_id(), ..SearchPaths::default() };
    Recorded::of(files, args.module.as_deref(), search)
}

/// A profile as its reader wants it.
fn text(reader: Reader, document: &Pgo) -> Result<String> {
    Ok(match reader {
        Reader::Bolt => pgo::bolt(document),
        Reader::Clang => sampled(pgo::unsymbolized(document), document)?,
        Reader::Profgen => pgo::unsymbolized(document),
        Reader::Autofdo => pgo::autofdo(document, &Program::read(Path::new(&document.module))?),
        Reader::Propeller => {
            pgo::clusters(document.clusters.as_ref().ok_or_else(|| unmapped(&document.module))?)
        }
        Reader::Lld => pgo::order(document),
        Reader::Json | Reader::Counts => json::pretty(document)?,
    })
}

/// The profile of a compiler.
fn sampled(unsymbolized: String, document: &Pgo) -> Result<String> {
    match document.has_lines {
        true => sample_profile(&installed("llvm-profgen"), unsymbolized, &document.module),
        false => Err(Error::failed(format!("{} has no line numbers", document.module))
            .because("by them a compiler finds its code")
            .hint(format!("compile it with `{LINES}`, then make the profile again"))),
    }
}

/// Gives a profile the order of its machine blocks for what reads it: among counts it may lack.
fn place(reader: Reader, document: &mut Pgo) -> Result<()> {
    match reader {
        Reader::Propeller => place_blocks(document),
        Reader::Json => {
            if let Err(error) = place_blocks(document) {
                let why = error.cause().unwrap_or_default();
                document.notes.push(format!("{}: {why}", error.what()));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// As [`text`]; what takes branches gets those that were recorded.
fn recorded_text(reader: Reader, recorded: &Recorded) -> Result<String> {
    let Recorded { branches, name, program, document } = recorded;
    Ok(match reader {
        Reader::Bolt => branches::bolt(branches, name),
        Reader::Clang => sampled(branches::unsymbolized(branches, name), document)?,
        Reader::Profgen => branches::unsymbolized(branches, name),
        Reader::Autofdo => branches::autofdo(branches, name, program),
        _ => text(reader, document)?,
    })
}

/// Writes a profile, and shows what it rests on and what is done with it.
fn write(args: &PgoArgs, files: &[PathBuf], text: &str, document: &Pgo) -> Result<()> {
    write_or_print(Some(&args.output), text, files)?;
    message::plain(&page(None).fitted(pgo::text(document)));
    document.notes.iter().for_each(|text| message::note(text));
    if !is_stdout(&args.output) {
        next(args, document);
    }
    Ok(())
}

/// Runs the command and counts.
fn count(args: &PgoArgs, command: &Command) -> Result<(Count, i32)> {
    let ask = CountAsk {
        command: command.clone(),
        process: args.pid.map(|pid| (pid, args.seconds.unwrap_or(WINDOW))),
        windows: args.windows,
        modules: args.module.iter().cloned().collect(),
        watch: Some(Callback::new(|step| _ = progress::step(&step))),
        ..CountAsk::default()
    };
    let mut progress = Progress::new("analysing the code");
    let found = counted(&ask, &mut |done, all| progress.show(done, all));
    progress.end();
    found
}

fn interrupted(signal: i32) -> ExitCode {
    message::note("interrupted: no profile is written");
    exit_code(128 + signal)
}

/// Two texts as one word.
fn joined(first: impl Into<OsString>, second: impl AsRef<OsStr>) -> OsString {
    let mut word = first.into();
    word.push(second);
    word
}

/// Shows what is done with the profile.
fn next(args: &PgoArgs, document: &Pgo) {
    match args.reader {
        Reader::Bolt => bolt(&args.output, document),
        Reader::Clang => clang(&args.output),
        Reader::Profgen => profgen(&args.output, document),
        Reader::Autofdo => autofdo(&args.output, document),
        Reader::Propeller => {
            let compiler =
                [installed("clang").into(), joined("-fbasic-block-sections=list=", &args.output)];
            message::remedy(&format!(
                "compile the same sources with `{}` and the same options, link with lld, by the order of --for lld",
                quoted(&compiler)
            ));
        }
        Reader::Lld => {
            let option = joined("-Wl,--symbol-ordering-file=", &args.output);
            message::remedy(&format!(
                "compile with -ffunction-sections, link with `-fuse-ld=lld {} -Wl,--no-warn-symbol-ordering`",
                quoted(&[option])
            ));
        }
        Reader::Json | Reader::Counts => {}
    }
}

fn bolt(profile: &Path, document: &Pgo) {
    if !document.has_relocations {
        message::note(
            "the program has no relocations: BOLT keeps its functions in their order; link it with -Wl,-q",
        );
    }
    message::remedy(&keeping(profile, document));
}

/// Whether a compiler finds the code of the program; else says how it would.
fn has_lines(document: &Pgo, options: &str) -> bool {
    if !document.has_lines {
        message::note("the program has no line numbers, by which a compiler finds its code");
        message::remedy(&format!("compile it with `{options}`, then make the profile again"));
    }
    document.has_lines
}

fn autofdo(profile: &Path, document: &Pgo) {
    // Debian's reads no newer DWARF.
    if !has_lines(document, "-gdwarf-4") {
        return;
    }
    let made = joined(profile, ".prof");
    let words = [
        "create_llvm_prof".into(),
        "--profiler=text".into(),
        joined("--profile=", profile),
        joined("--binary=", &document.module),
        joined("--out=", &made),
        "--format=text".into(),
    ];
    message::note(
        "Debian's create_llvm_prof reads DWARF 4 only, else it writes nothing: build with -gdwarf-4",
    );
    message::remedy(&format!("`{}`", quoted(&words)));
    let compiler = [installed("clang").into(), joined("-fprofile-sample-use=", made)];
    message::remedy(&format!("then compile with `{}`", quoted(&compiler)));
}

/// Options by which a compiler finds code again.
const LINES: &str = "-gline-tables-only -fdebug-info-for-profiling";

fn clang(profile: &Path) {
    let compiler = [installed("clang").into(), joined("-fprofile-sample-use=", profile)];
    message::remedy(&format!(
        "compile with `{}`, or with -Zprofile-sample-use of rustc",
        quoted(&compiler)
    ));
}

fn profgen(profile: &Path, document: &Pgo) {
    if !has_lines(document, LINES) {
        return;
    }
    let made = joined(profile, ".prof");
    let words = [
        installed("llvm-profgen").into(),
        joined("--unsymbolized-profile=", profile),
        joined("--binary=", &document.module),
        joined("--output=", &made),
        // Without it the profile is empty.
        "--use-offset=0".into(),
    ];
    message::remedy(&format!("`{}`, then", quoted(&words)));
    clang(Path::new(&made));
}

/// The name of a tool of LLVM as it is installed here, or would be.
fn installed(name: &str) -> String {
    found(name).unwrap_or_else(|| name.to_owned())
}
