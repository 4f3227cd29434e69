//! `tdtool diff A B`: reports or recordings compared, and lines that the differences must not cross.

use super::files::{page, picture, print};
use super::options::Global;
use super::recordings::{SearchArgs, present};
use crate::message;
use clap::{Args, ValueEnum};
use engine::compared::{files, flame_graph};
use report::documents::diff::judge::judge;
use report::documents::diff::{Condition, Crossing, Diff, conditions};
use report::files::{as_command, check_place, is_command, write_whole};
use report::flame::write_flame_graph;
use report::render::{diff as render, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use tma::shell::quoted;
use tma::{Error, Result};

/// Exit status where a line of `--fail-if` was crossed.
const CROSSED: u8 = 4;

#[derive(Args)]
#[command(after_help = "\
Examples:
  tdtool diff old.json new.json
  tdtool diff old.session new.session --flamegraph diff.svg
  tdtool diff old*.json --to new*.json --fail-if 'time > +5%, Backend_Bound > +3, sum > +10%'

With one run on a side, run-to-run variation is unknown: what differs beyond the
errors is more or less `in one run`, and --fail-if exits with 3. Several runs of
each side (--to) show it.")]
pub struct DiffArgs {
    /// A and B: reports (`report --format json`) or recordings; with --to, runs of A
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Runs of B: values are means of all runs, errors their spread
    #[arg(long, value_name = "FILE", num_args = 1..)]
    to: Vec<PathBuf>,
    #[command(flatten)]
    search: SearchArgs,
    /// Also write B's flame graph to FILE (.svg or .html), coloured by the change
    #[arg(long, value_name = "FILE", value_parser = picture)]
    flamegraph: Option<PathBuf>,
    /// Show all functions, loops and blocks, also those below their errors
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    form: FormArgs,
}

/// Conditions and form of a comparison.
#[derive(Args)]
pub struct FormArgs {
    /// Exit with 4 if a change crosses a line ('ipc < -2%'), 3 if that is not known
    #[arg(long, value_name = "CONDITIONS")]
    fail_if: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the comparison to FILE
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
    /// For the comment of a pull request
    Markdown,
    /// The conditions of --fail-if as test cases
    Junit,
}

impl DiffArgs {
    /// Refuses what is not two sides of files.
    pub fn check(&self) -> Result<()> {
        refuse_commands(&self.files)?;
        sides(self).map(drop)
    }
}

pub fn run(global: &Global, args: DiffArgs) -> Result<ExitCode> {
    let (files_a, files_b) = sides(&args)?;
    let inputs: Vec<PathBuf> = args.files.iter().chain(&args.to).cloned().collect();
    present(&inputs, "to make one: `tdtool record --output FILE -- COMMAND`")?;
    let conditions = args.form.check(&inputs)?;
    let settings = global.settings()?;
    let ask = settings.comparison(args.search.paths()?);
    if let Some(path) = &args.flamegraph {
        check_place(path, &inputs, "--flamegraph")?;
        if args.form.output.as_ref() == Some(path) {
            return Err(Error::usage(format!("{} is named for two outputs", path.display()))
                .hint("give --output and --flamegraph different files"));
        }
        write_flame_graph(&flame_graph(&ask, [files_a, files_b])?, path)?;
    }
    let compared = files(settings.library, &ask, [files_a, files_b])?;
    args.form.show(compared, &conditions, global.ascii, args.verbose)
}

/// Refuses commands in place of files: words with `--` between them, or two programs.
fn refuse_commands(files: &[PathBuf]) -> Result<()> {
    let (a, b) = match files.iter().position(|word| word.as_os_str() == "--") {
        Some(at) => (&files[..at], &files[at + 1..]),
        None if files.len() == 2 && files.iter().all(|file| is_command(file)) => files.split_at(1),
        None => return Ok(()),
    };
    let words = |side: &[PathBuf], absent: &str| match side.split_first() {
        None => absent.to_owned(),
        Some((program, rest)) => quoted(&[&[as_command(program)], rest].concat()),
    };
    Err(Error::usage("diff compares reports or recordings, not commands").hint(format!(
        "`tdtool bench {} -- {}`",
        words(a, "COMMAND-A"),
        words(b, "COMMAND-B")
    )))
}

/// The files of A and of B.
fn sides(args: &DiffArgs) -> Result<(&[PathBuf], &[PathBuf])> {
    match (args.files.as_slice(), args.to.as_slice()) {
        ([a, b], []) => Ok((std::slice::from_ref(a), std::slice::from_ref(b))),
        (a, b) if !b.is_empty() => Ok((a, b)),
        (files, _) => Err(Error::usage("diff needs two reports")
            .because(match files.len() {
                1 => "only one is given".to_owned(),
                n => format!("{n} are given, and nothing says which are of which side"),
            })
            .hint(
                "`tdtool diff A.json B.json` or `tdtool diff A1.json A2.json --to B1.json B2.json`",
            )),
    }
}

impl FormArgs {
    /// The conditions; that there are some where they are all that is written, and that the output is no input.
    pub fn check(&self, inputs: &[PathBuf]) -> Result<Vec<Condition>> {
        if let Some(path) = &self.output {
            check_place(path, inputs, "--output")?;
        }
        if self.format == Format::Junit && self.fail_if.is_none() {
            return Err(Error::usage(
                "--format junit has a test case for each condition, and there is none",
            )
            .hint("add --fail-if 'time > +5%'"));
        }
        self.fail_if.as_deref().map_or(Ok(Vec::new()), conditions)
    }

    /// Judges and shows the comparison.
    pub fn show(
        &self,
        mut compared: Diff,
        conditions: &[Condition],
        ascii: bool,
        verbose: bool,
    ) -> Result<ExitCode> {
        judge(&mut compared, conditions)?;
        if matches!(self.format, Format::Csv | Format::Junit) {
            // They may say that a recording is damaged, or that a condition may not hold.
            compared.notes.iter().for_each(|text| message::note(text));
            for gate in compared.gates(Crossing::Held) {
                let note = |why: &String| message::note(&format!("{}: {why}", gate.condition));
                gate.reason.iter().for_each(note);
            }
        }
        let text = match self.format {
            Format::Text => render::render(&compared, ascii, verbose, page(self.output.as_deref())),
            Format::Json => json::pretty(&compared)?,
            Format::Csv => render::csv(&compared),
            Format::Markdown => render::markdown(&compared, verbose),
            Format::Junit => render::junit(&compared),
        };
        match &self.output {
            Some(path) => write_whole(path, text.as_bytes(), &[], "--output")?,
            None => print(&text)?,
        }
        status(&compared)
    }
}

/// The exit status; what was crossed, and what could not be judged, on standard error.
fn status(compared: &Diff) -> Result<ExitCode> {
    let names = |crossing| {
        let all = compared.gates(crossing).map(|gate| gate.condition.as_str());
        all.collect::<Vec<_>>().join(", ")
    };
    let (crossed, undecided) = (names(Crossing::Crossed), names(Crossing::Undecided));
    let undecided = (!undecided.is_empty()).then(|| {
        let why: BTreeSet<&str> =
            compared.gates(Crossing::Undecided).filter_map(|gate| gate.reason.as_deref()).collect();
        let why: Vec<&str> = why.into_iter().collect();
        let error = Error::not_possible(format!("undecided: {undecided}")).because(why.join("; "));
        match compared.has_single_runs() {
            true => {
                error.hint("compare several runs of each: `tdtool diff A1 A2 A3 --to B1 B2 B3`")
            }
            false => error,
        }
    });
    if crossed.is_empty() {
        return undecided.map_or(Ok(ExitCode::SUCCESS), Err);
    }
    undecided.iter().for_each(|error| _ = message::error(error));
    message::print("error", &format!("crossed: {crossed}"), None, None);
    Ok(ExitCode::from(CROSSED))
}
