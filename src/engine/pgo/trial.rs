//! A program and a copy of it that llvm-bolt optimised by its profile: the same output, times in turns, and the code that
//! both executed.

use super::Profile;
use super::bolt::{installed, optimised, suitable};
use super::executed::executed;
use super::same::{Same, same};
use crate::compared::{self, InterleavedAsk, Runs, Turn};
use crate::count::ask::program;
use crate::count::{CountAsk, counted};
use crate::steps::{Callback, Step};
use crate::topdown::LiveAsk;
use pmu::machine::Machine;
use pmu::perf::{HeldSignals, Signals};
use pmu::{Command, Stdout};
use report::documents::count::Count;
use report::documents::diff::judge::control;
use report::documents::diff::runs::mean;
use report::documents::diff::{Diff, diff};
use report::documents::pgo::Pgo;
use report::documents::trial::{Change, Executed, SCHEMA, Time, Trial, Verdict};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tma::tables::Library;
use tma::temporary::TemporaryFolder;
use tma::{Error, Result};

/// Shortest run that is timed, in seconds: starting a process takes a millisecond.
const SHORTEST: f64 = 0.005;

/// Steps before the timed runs.
const STEPS: usize = 5;

/// What to optimise, train and measure.
pub struct TrialAsk {
    /// The command that is timed, and what is counted meanwhile.
    pub measured: LiveAsk,
    /// The command whose run makes the profile, if that is another.
    pub train: Option<Vec<OsString>>,
    /// Counts of earlier runs; without `train`, they alone make the profile.
    pub merged: Vec<Count>,
    /// The file that is optimised; the command's own program if none.
    pub module: Option<PathBuf>,
    /// Whether targets of indirect jumps and calls are recorded in a further run.
    pub targets: bool,
    /// Timed runs of each.
    pub rounds: u32,
    /// Called as each step begins.
    pub watch: Callback<Step>,
}

/// What came of it.
pub enum Tried {
    /// The comparison, and the profile.
    Done(Box<(Trial, Pgo)>),
    /// A signal ended it before.
    Interrupted(i32),
}

/// Why there is no comparison.
enum Stop {
    Signal(i32),
    Error(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Makes a profile, optimises a copy and compares it.
///
/// # Errors
/// There is no llvm-bolt, or it fails; the file is no program with relocations; a command cannot be started or traced;
/// the copy does something else, or runs too short.
pub fn tried(machine: &Machine, library: &Library, ask: &TrialAsk) -> Result<Tried> {
    let held = HeldSignals::start()?;
    let found = Trying { machine, library, ask }.all();
    let signal = held.end();
    match (found, signal) {
        (Err(Stop::Signal(signal)), _) | (_, Some(signal)) => Ok(Tried::Interrupted(signal)),
        (Ok(done), None) => Ok(Tried::Done(Box::new(done))),
        (Err(Stop::Error(error)), None) => Err(error),
    }
}

/// The steps of it.
struct Trying<'a> {
    machine: &'a Machine,
    library: &'a Library,
    ask: &'a TrialAsk,
}

impl Trying<'_> {
    fn all(&self) -> std::result::Result<(Trial, Pgo), Stop> {
        let tool = installed("llvm-bolt").ok_or_else(no_bolt)?;
        let command = self.ask.measured.command.clone().unwrap_or_default();
        let command = Command { stdout: Stdout::Dropped, ..command };
        let resolved = |path: &Path| {
            tma::files::resolved(path).map_err(|error| tma::error::unreadable(path, &error))
        };
        let own = resolved(&program(&command)?)?;
        let module = self.ask.module.as_deref().map_or(Ok(own.clone()), resolved)?;
        suitable(&module, module == own)?;
        let folder = TemporaryFolder::new()
            .map_err(|e| Error::failed("cannot make a folder for the copy").because(e))?;
        let trained = self.trained(&command, &module)?;
        self.step(2, &tool, false);
        let signals = Signals::catch()?;
        let copy = optimised(&tool, &trained.document, folder.path(), &signals)?;
        let signal = signals.next();
        drop(signals);
        let (Some(copy), None) = (copy, signal) else {
            return Err(Stop::Signal(signal.map_or(libc::SIGINT, |(signal, _)| signal)));
        };
        let both = match module == own {
            true => [command.clone(), Command { file: Some(copy.clone()), ..command.clone() }],
            false => [&module, &copy].map(|file| preloaded(&command, file)),
        };
        self.step(3, "output of both", true);
        let run = |both, runs| self.run(both, runs, &mut |_| Ok(()));
        let same = same(&both, folder.path(), run)?;
        if same.seconds < SHORTEST {
            return Err(too_short(same.seconds).into());
        }
        self.step(4, "counts of both", true);
        let before = trained.executed.map_or_else(|| self.executed(&both[0], &module), Ok)?;
        let mut notes = trained.document.notes.clone();
        let code = match self.executed(&both[1], &copy) {
            Ok(after) => Some([before, after]),
            // A program runs as the copy in any case, a library may not.
            Err(Stop::Error(error)) if module == own => {
                let why = error.cause().unwrap_or_default();
                notes.push(format!("the code of the copy is not counted: {}: {why}", error.what()));
                None
            }
            Err(other) => return Err(other),
        };
        let (change, compared) = self.timed(&both, &same)?;
        let trial = Trial {
            schema: SCHEMA.to_owned(),
            module: trained.document.module.clone(),
            trained: trained.commands,
            measured: self.ask.measured.typed.clone(),
            is_same_input: trained.is_same_input,
            optimiser: tool,
            output: same.bytes,
            exit: same.exit,
            change,
            compared,
            code,
            notes,
        };
        Ok((trial, trained.document))
    }

    fn step(&self, number: usize, what: &str, runs: bool) {
        let (what, of) = (what.to_owned(), STEPS);
        self.ask.watch.call(Step { what, number, of, runs, ..Step::default() });
    }

    /// Makes the profile.
    fn trained(&self, command: &Command, module: &Path) -> std::result::Result<Trained, Stop> {
        let ask = self.ask;
        let own = ask.train.is_none() && ask.merged.is_empty();
        let train = match &ask.train {
            Some(argv) => Command { argv: argv.clone(), ..command.clone() },
            None => command.clone(),
        };
        let mut counts = ask.merged.clone();
        if own || ask.train.is_some() {
            self.step(1, "counts", true);
            counts.push(self.count(&train, module)?);
        }
        let commands: Vec<Vec<String>> = counts.iter().map(|one| one.command.clone()).collect();
        let mut profile = Profile::of(&counts, Some(module))?;
        if ask.targets
            && let Some(signal) = profile.record_targets(&train)?
        {
            return Err(Stop::Signal(signal));
        }
        let document = profile.document();
        let executed = own.then(|| executed(&profile, &document));
        let is_same_input = commands.contains(&ask.measured.typed);
        Ok(Trained { document, executed, commands, is_same_input })
    }

    /// Counts a run.
    fn count(&self, command: &Command, module: &Path) -> std::result::Result<Count, Stop> {
        let ask = CountAsk {
            command: command.clone(),
            modules: vec![module.to_owned()],
            ..CountAsk::default()
        };
        let (document, _) = counted(&ask, &mut |_, _| {})?;
        match document.interrupted {
            Some(signal) => Err(Stop::Signal(signal)),
            None => Ok(document),
        }
    }

    /// The code that a run executes of a file.
    fn executed(&self, command: &Command, module: &Path) -> std::result::Result<Executed, Stop> {
        let counts = self.count(command, module)?;
        if counts.blocks.iter().all(|block| block.count == 0) {
            return Err(not_used(module).into());
        }
        let profile = Profile::of(&[counts], Some(module))?;
        Ok(executed(&profile, &profile.document()))
    }

    /// The timed runs.
    fn timed(&self, both: &[Command; 2], same: &Same) -> std::result::Result<(Change, Diff), Stop> {
        let progress = &mut |Turn { number, of, .. }: Turn| {
            self.step(STEPS, &format!("run {number} of {of}"), true);
            Ok(())
        };
        let runs = self.run(both.clone(), self.ask.rounds, progress)?;
        let ends = runs.reports.iter().flatten().map(|report| report.exit);
        if ends.into_iter().any(|exit| exit != same.exit) {
            return Err(Error::failed("a timed run ended otherwise than the ones before")
                .hint("run the command several times: is its exit status the same?")
                .into());
        }
        let [mut a, mut b] =
            [mean(&runs.reports[0])?.into_owned(), mean(&runs.reports[1])?.into_owned()];
        a.subject.clear();
        b.subject.clear();
        let mut compared = diff("program", &a, "optimised copy", &b);
        control(&mut compared, [a.repeats as usize, b.repeats as usize]);
        let of = |time: Time| Change::of(time, runs.paired(time.id()));
        Ok((clearest(of(Time::Wall), of(Time::Processor)), compared))
    }

    /// Runs both in turns.
    fn run(
        &self,
        both: [Command; 2],
        runs: u32,
        progress: &mut dyn FnMut(Turn) -> Result<()>,
    ) -> std::result::Result<Runs, Stop> {
        let live = |command: Command| {
            let command = Some(command.run_again());
            LiveAsk { command, ..self.ask.measured.clone() }
        };
        let ask = InterleavedAsk { commands: both.map(live), warm_up: 0, runs, may_fail: true };
        let runs = compared::run(self.machine, self.library, &ask, progress)?;
        match runs.interrupted {
            Some(signal) => Err(Stop::Signal(signal)),
            None => Ok(runs),
        }
    }
}

/// A profile, and what it was made of.
struct Trained {
    document: Pgo,
    /// The code of the measured command, if that is what was counted.
    executed: Option<Executed>,
    commands: Vec<Vec<String>>,
    is_same_input: bool,
}

/// The change of wall time; where that tells nothing, as on a busy machine, that of processor time if it is clear.
fn clearest(wall: Change, processor: Change) -> Change {
    let is_open = matches!(wall.verdict, Verdict::WithinNoise | Verdict::TooFew | Verdict::Unknown);
    let is_clear = matches!(processor.verdict, Verdict::Faster | Verdict::Slower);
    if is_open && is_clear { processor } else { wall }
}

/// The command with a library in place of the one of its name: by LD_PRELOAD, before those that are there (ld.so(8)).
fn preloaded(command: &Command, file: &Path) -> Command {
    let mut value = OsString::from("LD_PRELOAD=");
    value.push(file);
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        value.push(":");
        value.push(others);
    }
    let argv = [OsString::from("env"), value].into_iter().chain(command.argv.clone()).collect();
    Command { argv, ..command.clone() }
}

fn no_bolt() -> Error {
    Error::not_possible("llvm-bolt is not installed")
        .because("neither llvm-bolt nor llvm-bolt-N is in PATH")
        .hint("Debian and Ubuntu: `apt install bolt-19`; Fedora: `dnf install llvm-bolt`")
}

fn too_short(seconds: f64) -> Error {
    let shown = report::format::seconds(seconds);
    Error::not_possible(format!("the command runs for {shown}: too short to compare"))
        .because("starting a process takes a good part of it")
        .hint("give it an input with which it runs for 0.1 s and more")
}

/// A library that is opened by its path is not replaced by a preloaded one.
fn not_used(module: &Path) -> Error {
    Error::failed(format!("the command executes nothing of {}", module.display()))
        .because("the copy of a library takes the place of one with its name (LD_PRELOAD)")
        .hint("it must be linked, with a name of its own (-Wl,-soname), not opened by its path")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wall time that changes too little for certain is an answer; processor time does not replace it.
    #[test]
    fn processor_time_stands_in_only_for_wall_time_that_is_not_clear() {
        let of = |time, verdict| Change { time, paired: None, verdict };
        let chosen = |wall, processor| {
            clearest(of(Time::Wall, wall), of(Time::Processor, processor)).verdict
        };
        for open in [Verdict::WithinNoise, Verdict::TooFew, Verdict::Unknown] {
            assert_eq!(chosen(open, Verdict::Faster), Verdict::Faster);
            assert_eq!(chosen(open, Verdict::TooSmall), open);
        }
        for told in [Verdict::TooSmall, Verdict::Slower] {
            assert_eq!(chosen(told, Verdict::Faster), told);
        }
    }
}
