//! `tdtool pgo --try`: the program compared with a copy that llvm-bolt optimised by its profile.

use super::files::{page, print};
use super::measure::{exit_code, usage};
use super::options::Global;
use super::progress;
use crate::message;
use clap::{Args, ValueEnum};
use engine::pgo::bolt::{command, installed};
use engine::pgo::trial::{TrialAsk, Tried, tried};
use engine::steps::{Callback, Step};
use engine::topdown::{Ask, LiveAsk};
use pmu::Command;
use report::documents::count::Count;
use report::documents::pgo::Pgo;
use report::documents::trial::Verdict;
use report::files::{is_stdout, write_whole};
use report::render::{json, pgo, trial};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tma::Result;
use tma::shell::{quoted, words};

/// Where the profile goes that is not kept.
pub const NOWHERE: &str = "/dev/null";

/// The group of these options in the help.
const TRY: &str = "Trying it";

#[derive(Args)]
pub struct TryArgs {
    /// Compare the program with a copy that llvm-bolt optimises by the profile
    #[arg(long = "try", id = "attempt", requires = "command", help_heading = TRY)]
    is_given: bool,
    /// Make the profile of this command (one word), and measure CMD
    #[arg(long, value_name = "COMMAND", requires = "attempt", help_heading = TRY)]
    train: Option<String>,
    /// Timed runs of each
    #[arg(long, value_name = "N", default_value = "10", requires = "attempt", value_parser = clap::value_parser!(u32).range(2..=10_000), help_heading = TRY)]
    rounds: u32,
    /// Format of the comparison
    #[arg(long, value_enum, default_value = "text", requires = "attempt", help_heading = TRY)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// What the profile is of.
pub struct Asked<'a> {
    pub command: &'a [OsString],
    pub module: Option<PathBuf>,
    pub merged: Vec<Count>,
    pub targets: bool,
    /// Where the profile is kept, or [`NOWHERE`].
    pub output: &'a Path,
}

impl TryArgs {
    /// Whether the program is compared at all.
    pub fn is_given(&self) -> bool {
        self.is_given
    }

    pub fn run(&self, global: &Global, asked: Asked<'_>) -> Result<ExitCode> {
        if is_stdout(asked.output) {
            return Err(usage("--try prints the comparison, not the profile", "-o FILE"));
        }
        let train = self.train.as_deref().map(|line| {
            let all = words(line).filter(|words| !words.is_empty());
            all.ok_or_else(|| {
                usage("--train takes a command as one word", "--train './program \"an input\"'")
            })
        });
        let settings = global.settings()?;
        let argv = workload::resolve(asked.command);
        let measured = LiveAsk {
            ask: Ask { level: Some(1), ..Ask::default() },
            uarch: settings.uarch.clone(),
            command: Some(Command { argv, ..Command::default() }.run_again()),
            typed: asked.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            ..LiveAsk::of(settings.core()?)
        };
        let ask = TrialAsk {
            measured,
            train: train.transpose()?,
            merged: asked.merged,
            module: asked.module,
            targets: asked.targets,
            rounds: self.rounds,
            watch: Callback::new(|step| _ = progress::step(&step)),
        };
        let found = tried(settings.machine(), settings.library, &ask);
        progress::step(&Step::default());
        let (document, profile) = match found? {
            Tried::Done(done) => *done,
            Tried::Interrupted(signal) => {
                message::note("interrupted: nothing is compared");
                return Ok(exit_code(128 + signal));
            }
        };
        let text = match self.format {
            Format::Text => trial::text(&document, global.ascii, page(None)),
            Format::Json => json::pretty(&document)?,
        };
        print(&text)?;
        document.notes.iter().for_each(|text| message::note(text));
        let is_faster = document.change.verdict == Verdict::Faster;
        if asked.output == Path::new(NOWHERE) {
            if is_faster {
                message::remedy(
                    "to keep it: -o FILE keeps the profile, and prints the command of llvm-bolt",
                );
            }
        } else {
            write_whole(asked.output, pgo::bolt(&profile).as_bytes(), &[], "--output")?;
            let command = keeping(asked.output, &profile);
            if is_faster {
                message::remedy(&format!("to keep the optimised program: {command}"));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The command of llvm-bolt by a profile in a file, in backticks.
pub fn keeping(profile: &Path, document: &Pgo) -> String {
    let tool = installed("llvm-bolt").unwrap_or_else(|| "llvm-bolt".to_owned());
    let mut made = OsString::from(&document.module);
    made.push(".bolt");
    format!("`{}`", quoted(&command(&tool, document, profile.as_os_str(), made)))
}
