//! `tdtool pgo`: a profile for optimisers from exact counts of a command, or from documents of counts.

use super::files::{page, write_or_print};
use super::measure::exit_code;
use super::progress::{self, Progress};
use crate::message;
use clap::{Args, ValueEnum};
use engine::count::{CountAsk, counted};
use engine::pgo::Profile;
use engine::steps::Callback;
use pmu::Command;
use report::documents::count::Count;
use report::documents::pgo::Pgo;
use report::files::{check_place, is_stdout};
use report::render::{json, pgo};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tma::Result;
use tma::shell::quoted;

#[derive(Args)]
pub struct PgoArgs {
    /// Write the profile to FILE
    #[arg(long, short, value_name = "FILE")]
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
    /// Add counts of an earlier run (`tdtool count --format json`); repeatable
    #[arg(long, value_name = "FILE")]
    merge: Vec<PathBuf>,
    /// The command: a typical run
    #[arg(last = true, required_unless_present = "merge", value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Reader {
    /// BOLT, which reorders a linked program: pre-aggregated profile
    Bolt,
    /// clang and rustc, by way of llvm-profgen: unsymbolized profile
    Clang,
    /// lld: symbols in order
    Lld,
    /// Other programs: counts, each with how it is known
    Json,
}

pub fn run(args: &PgoArgs) -> Result<ExitCode> {
    check_place(&args.output, &args.merge, "--output")?;
    let mut counts: Vec<Count> =
        args.merge.iter().map(|path| Count::read(path)).collect::<Result<_>>()?;
    let stdout = pmu::Stdout::beside(is_stdout(&args.output));
    let command = Command { argv: args.command.clone(), stdout, ..Command::default() };
    let command = if args.targets { command.run_again() } else { command };
    let mut code = 0;
    if !args.command.is_empty() {
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
    let document = profile.document();
    let text = match args.reader {
        Reader::Bolt => pgo::bolt(&document),
        Reader::Clang => pgo::unsymbolized(&document),
        Reader::Lld => pgo::order(&document),
        Reader::Json => json::pretty(&document)?,
    };
    write_or_print(Some(&args.output), &text, &args.merge)?;
    message::plain(&page(None).fitted(pgo::text(&document)));
    document.notes.iter().for_each(|text| message::note(text));
    if !is_stdout(&args.output) {
        next(args, &document);
    }
    Ok(exit_code(code))
}

/// Runs the command and counts.
fn count(args: &PgoArgs, command: &Command) -> Result<(Count, i32)> {
    let ask = CountAsk {
        command: command.clone(),
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
        Reader::Clang => clang(&args.output, document),
        Reader::Lld => {
            let option = joined("-Wl,--symbol-ordering-file=", &args.output);
            message::remedy(&format!(
                "compile with -ffunction-sections, link with `-fuse-ld=lld {} -Wl,--no-warn-symbol-ordering`",
                quoted(&[option])
            ));
        }
        Reader::Json => {}
    }
}

fn bolt(profile: &Path, document: &Pgo) {
    if !document.has_relocations {
        message::note(
            "the program has no relocations: BOLT keeps its functions in their order; link it with -Wl,-q",
        );
    }
    let mut words: Vec<OsString> = vec![installed("llvm-bolt").into(), (&document.module).into()];
    words.extend(["-o".into(), joined(&document.module, ".bolt"), "-p".into(), profile.into()]);
    words.extend(BOLT.iter().map(OsString::from));
    if document.has_relocations {
        words.extend(MOVED.iter().map(OsString::from));
    }
    message::remedy(&format!("`{}`", quoted(&words)));
}

fn clang(profile: &Path, document: &Pgo) {
    if !document.has_lines {
        message::note("the program has no line numbers, by which a compiler finds its code");
        message::remedy(
            "compile it with `-gline-tables-only -fdebug-info-for-profiling`, then count it again",
        );
        return;
    }
    let profgen = installed("llvm-profgen");
    // A compiler reads what a tool of its own version wrote.
    let compiler = profgen.replace("llvm-profgen", "clang");
    let made = joined(profile, ".prof");
    let words = [
        profgen.into(),
        joined("--unsymbolized-profile=", profile),
        joined("--binary=", &document.module),
        joined("--output=", &made),
        // Without it the profile is empty.
        "--use-offset=0".into(),
    ];
    message::remedy(&format!("`{}`", quoted(&words)));
    message::remedy(&format!(
        "then compile with `{}`, or with -Zprofile-sample-use of rustc",
        quoted(&[compiler.into(), joined("-fprofile-sample-use=", made)])
    ));
}

/// Options of llvm-bolt for such a profile.
const BOLT: [&str; 4] = ["-pa", "-reorder-blocks=ext-tsp", "-split-functions", "-split-all-cold"];
/// Further ones if functions can be moved.
const MOVED: [&str; 2] = ["-reorder-functions=cdsort", "-icf=1"];

/// The name of a tool of LLVM as it is installed here: with the highest version if it has one.
fn installed(name: &str) -> String {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    if folders.iter().any(|folder| folder.join(name).is_file()) {
        return name.to_owned();
    }
    let versions = folders.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
    let version = |file: std::fs::DirEntry| {
        let file = file.file_name();
        file.to_str()?.strip_prefix(name)?.strip_prefix('-')?.parse::<u32>().ok()
    };
    let newest = versions.filter_map(version).max();
    newest.map_or_else(|| name.to_owned(), |version| format!("{name}-{version}"))
}
