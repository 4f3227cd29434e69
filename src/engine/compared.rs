//! Compares two measurements (reports, or recordings of which reports are made), and measures two commands
//! alternately, so that other work of the machine disturbs both equally.

use crate::hot::stream;
use crate::reports::of_files;
use crate::sampled::attributed;
use crate::sampled::code::CodeAsk;
use crate::topdown::{ImportAsk, LiveAsk, Outcome, Update, live};
use pmu::machine::Machine;
use profile::counts::FileKind;
use profile::files::SearchPaths;
use profile::hot::Filter;
use report::documents::diff::compare::code;
use report::documents::diff::judge::control;
use report::documents::diff::paired::Paired;
use report::documents::diff::runs::{limit, mean};
use report::documents::diff::{Diff, diff};
use report::documents::flame::FlameGraph;
use report::documents::{Exit, Report, report_file};
use report::flame::{StackSide, differential};
use report::format;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use tma::tables::Library;
use tma::{Error, Result};

/// Functions and blocks of a recording that are compared.
const MOST: usize = 200;

/// Settings for reading recordings.
#[derive(Debug, Clone)]
pub struct CompareAsk {
    /// The question about their counts; its files are those of the comparison.
    pub import: ImportAsk,
    /// Where programs are.
    pub search: SearchPaths,
}

/// The report in a file: a document, or that of a session, of perf's samples or of counts.
///
/// # Errors
/// The file cannot be read, or has no report.
pub fn report(library: &Library, ask: &CompareAsk, file: &Path) -> Result<Report> {
    match FileKind::of(file)? {
        FileKind::Document => report_file::read(file),
        // Other tools order the keys of a document in other ways; and there are counts in JSON.
        FileKind::Other if is_json(file) => {
            report_file::read(file).or_else(|error| recorded(library, ask, file).map_err(|_| error))
        }
        _ => recorded(library, ask, file),
    }
}

fn is_json(file: &Path) -> bool {
    let mut first = [0];
    let read = profile::kept::open(file).ok().map(|mut file| file.read_exact(&mut first));
    matches!(read, Some(Ok(()))) && first == *b"{"
}

fn recorded(library: &Library, ask: &CompareAsk, file: &Path) -> Result<Report> {
    let import = ImportAsk { files: vec![file.to_owned()], ..ask.import.clone() };
    let wanted =
        CodeAsk { functions: MOST, blocks: MOST, search: ask.search.clone(), ..CodeAsk::default() };
    let last = of_files(library, &import, Some(&wanted), &mut |_, _| {})?.pop();
    last.ok_or_else(|| Error::failed(format!("{} has no report", tma::files::name(file))))
}

/// Compares the runs in the files of A with those of B.
///
/// # Errors
/// A file cannot be read; the runs of one side are of different microarchitectures.
pub fn files(library: &Library, ask: &CompareAsk, [a, b]: [&[PathBuf]; 2]) -> Result<Diff> {
    let read = |files: &[PathBuf]| -> Result<Vec<Report>> {
        files.iter().map(|file| Ok(named(report(library, ask, file)?, file))).collect()
    };
    let (of_a, of_b) = (read(a)?, read(b)?);
    let mut compared = diff(&names(a), &*mean(&of_a)?, &names(b), &*mean(&of_b)?);
    compared.code = code(&of_a, &of_b);
    let runs = |reports: &[Report]| match reports {
        [one] => one.repeats as usize,
        all => all.len(),
    };
    control(&mut compared, [runs(&of_a), runs(&of_b)]);
    if let ([a, ..], [b, ..]) = (&of_a[..], &of_b[..]) {
        limit(&mut compared, [a, b]);
    }
    for (files, reports) in [(a, &of_a), (b, &of_b)] {
        for (file, report) in files.iter().zip(reports) {
            let incomplete = incomplete(report).map(|note| format!("{}: {note}", file.display()));
            compared.notes.extend(incomplete);
        }
    }
    Ok(compared)
}

/// A report whose subject is the command of a recording in place of its file, which the title has already.
fn named(mut report: Report, file: &Path) -> Report {
    let file = file.display().to_string();
    if report.subject.contains(&file) {
        report.subject.retain(|subject| *subject != file);
        let command = report.measured_command().unwrap_or_default();
        if !command.is_empty() {
            let shown = format::command(command);
            report.subject.insert(0, shown);
        }
    }
    report
}

/// Words of notes by which a recording is not whole.
const INCOMPLETE: [&str; 4] = ["cut off", "damaged", "stopped before", "not read"];

/// The notes of a report that say so.
fn incomplete(report: &Report) -> impl Iterator<Item = &String> {
    let of_samples = report.sampled.iter().flat_map(|sampled| &sampled.notes);
    let is_one = |note: &&String| INCOMPLETE.iter().any(|words| note.contains(words));
    report.notes.iter().chain(of_samples).filter(is_one)
}

/// The call stacks of the runs of A and B as one flame graph.
///
/// # Errors
/// A file is no recording with samples, or cannot be read.
pub fn flame_graph(ask: &CompareAsk, [a, b]: [&[PathBuf]; 2]) -> Result<FlameGraph> {
    Ok(differential(&[stacks(ask, a)?, stacks(ask, b)?]))
}

/// The stacks of one side.
fn stacks(ask: &CompareAsk, files: &[PathBuf]) -> Result<StackSide> {
    let mut side = StackSide { name: names(files), runs: files.len(), ..StackSide::default() };
    let filter = Filter { chains: true, ..Filter::default() };
    let search = ask.search.clone();
    let wanted = CodeAsk { functions: 0, filter, search, ..CodeAsk::default() };
    for file in files {
        let name = file.display();
        let recording = stream(file, wanted.filter.chains)?.ok_or_else(|| {
            Error::usage(format!("{name} has no call stacks"))
                .because("a differential flame graph is of recordings with samples")
                .hint("`tdtool record -g -o a.session -- CMD`, or perf.data of perf record -g")
        })?;
        let mut of = attributed::profile(&recording, &wanted)?;
        if !of.has_chains() {
            side.notes.push(format!("{name} has no call chains: every stack is one function"));
        }
        side.stacks.extend(of.stacks());
        if !side.event.is_empty() && side.event != of.event {
            return Err(Error::usage(format!("{} were sampled on different events", side.name))
                .because(format!("{} and {}", side.event, of.event)));
        }
        side.event.clone_from(&of.event);
    }
    Ok(side)
}

fn names(files: &[PathBuf]) -> String {
    let shown: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    shown.join(", ")
}

/// The reports of the runs of A and of B.
#[derive(Default)]
pub struct Runs {
    /// The reports of each command, in order of time.
    pub reports: [Vec<Report>; 2],
    /// Seconds of all complete runs of each, those before the ones that count, too.
    pub seconds: [Vec<f64>; 2],
    /// The signal that ended it early.
    pub interrupted: Option<i32>,
}

impl Runs {
    /// A count of software, by its id, of both in each round.
    pub fn paired(&self, id: &str) -> Option<Paired> {
        let of = |report: &Report| report.software.get(id).copied().flatten().unwrap_or(0.0);
        let [first, second] =
            self.reports.each_ref().map(|all| all.iter().map(of).collect::<Vec<_>>());
        Paired::of(&first, &second)
    }
}

/// Commands to run, how often, and how failures are handled.
pub struct InterleavedAsk {
    /// A and B.
    pub commands: [LiveAsk; 2],
    /// Runs of each before those that count.
    pub warm_up: u32,
    /// Runs of each.
    pub runs: u32,
    /// A command may end with a status other than 0.
    pub may_fail: bool,
}

/// A run that begins.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// 0 of A, 1 of B.
    pub side: usize,
    /// Its number, from 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

/// Runs A B B A A B …: a drift of the machine adds the same to both. `before` is called before each run.
///
/// # Errors
/// A command cannot be started or measured, or ends with a failure; that of `before`.
pub fn run(
    machine: &Machine,
    library: &Library,
    ask: &InterleavedAsk,
    before: &mut dyn FnMut(Turn) -> Result<()>,
) -> Result<Runs> {
    let mut all = Runs::default();
    let rounds = ask.warm_up + ask.runs;
    for round in 0..rounds {
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for (place, side) in order.into_iter().enumerate() {
            before(Turn { side, number: 2 * round + place as u32 + 1, of: 2 * rounds })?;
            let mut ignore = |_: Update| {};
            let outcome = live(machine, library, &ask.commands[side], &mut ignore)?;
            if outcome.interrupted.is_some() {
                all.interrupted = outcome.interrupted;
                return Ok(all);
            }
            if !ask.may_fail {
                succeeded(&outcome, &ask.commands[side])?;
            }
            all.seconds[side].extend(outcome.report.duration);
            if round >= ask.warm_up {
                all.reports[side].push(outcome.report);
            }
        }
    }
    Ok(all)
}

fn succeeded(outcome: &Outcome, ask: &LiveAsk) -> Result<()> {
    let how = match outcome.report.exit {
        None | Some(Exit::Status(0)) => return Ok(()),
        Some(Exit::Status(status)) => format!("its exit status is {status}"),
        Some(Exit::Signal(signal)) => format!("signal {signal} killed it"),
    };
    Err(Error::failed(format!("a run of `{}` failed", ask.typed.join(" ")))
        .because(how)
        .hint("try it alone, or measure it all the same with --ignore-failure"))
}
