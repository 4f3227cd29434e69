//! Chosen functions of a command → exact counts of their blocks.

use crate::count_hot::{self, Counted};
use crate::documents::Exit;
use crate::documents::count::{
    BlockRow, BranchRow, Cost, Count, EdgeRow, LoopRow, Refused, SCHEMA, Trips,
};
use crate::function_name;
use crate::hot::hottest::Hottest;
use crate::loads::loads;
use crate::mispredicted;
use crate::values;
use pmu::Command;
use pmu::perf::{Child, Signals};
use probe::count::{Counts, FunctionCounts, Progress, Wanted, count_process, count_sampled};
use probe::facts::{Named, functions};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tma::{Core, Error, Result};

/// What to count.
#[derive(Debug, Clone)]
pub struct CountAsk {
    /// The command; not used with a process.
    pub command: Command,
    /// A live process instead, and for how long.
    pub process: Option<(i32, Duration)>,
    /// Files with the functions; the command's own program if none.
    pub modules: Vec<PathBuf>,
    /// Names of functions, or addresses in them (`0x4327`); all if none.
    pub functions: Vec<String>,
    /// Those that hold most of the samples of an earlier run, instead.
    pub hot: Option<Hottest>,
    /// Whether the command is also run without probes, for the cost.
    pub plain: bool,
    /// Whether it is run twice more, for access patterns and latencies of the hot loads.
    pub loads: bool,
    /// Whether registers at the entries of functions and loops are recorded, and at those of the blocks with
    /// these addresses: it is run once more.
    pub values: Option<Vec<u64>>,
    /// Whether mispredictions are modelled, on this core: the command is run once more.
    pub branches: Option<Arc<Core>>,
}

/// A function to count, with its name.
struct Chosen {
    name: String,
    aliases: Vec<String>,
    wanted: Wanted,
}

/// Fewest entries of a loop, in a window of a live process, for which the mean of its trips is given: an execution of
/// each thread is cut at the beginning and at the end, up to one in a hundred of these.
const LEAST_IN_WINDOW: u64 = 200;

/// Runs the command and counts, or counts in a live process, whose analysis is reported to `progress`.
/// With the document, the exit status that a shell would give: that of the command, or 128 + the signal
/// that interrupted the run; 1 if probes remain in a live process.
///
/// # Errors
/// No such function or file; the command cannot be started or traced.
pub fn counted(ask: &CountAsk, progress: Progress<'_>) -> Result<(Count, i32)> {
    if ask.process.is_some() {
        progress(0, 1);
    }
    if let Some(signal) = ask.hot.as_ref().and_then(|found| found.interrupted) {
        return Err(Error::failed("the command was not counted")
            .because(format!("signal {signal} interrupted the run that was sampled")));
    }
    let mut samples = Vec::new();
    let (chosen, hot) = match &ask.hot {
        Some(found) => {
            let (all, hot) = count_hot::hot(found)?;
            let mut one = |of: Counted| {
                samples.push(of.samples);
                Chosen { name: of.name, aliases: Vec::new(), wanted: of.wanted }
            };
            (all.into_iter().map(&mut one).collect(), Some(hot))
        }
        None => (chosen(ask)?, None),
    };
    let plain = if ask.plain && ask.process.is_none() { Some(plain(&ask.command)?) } else { None };
    let signals = Signals::catch()?;
    let wanted: Vec<Wanted> = chosen.iter().map(|c| c.wanted.clone()).collect();
    let counts = match ask.process {
        Some((pid, window)) => count_process(pid, &wanted, window, &signals, progress)?,
        None => count_sampled(&ask.command, &wanted, &samples, &signals)?,
    };
    let mut document = Count {
        schema: SCHEMA.to_owned(),
        command: ask.command.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        process: ask.process.map(|(pid, _)| pid),
        exit: counts.exit.map(ended),
        hot,
        cost: costs(ask, &counts, plain),
        notes: counts.notes.clone(),
        ..Count::default()
    };
    for (number, (one, found)) in chosen.iter().zip(&counts.functions).enumerate() {
        match found {
            Ok(found) => enter(&mut document, one, found, samples.get(number)),
            Err(why) => document.refused.push(refused(one, one.wanted.range.start, why)),
        }
    }
    if ask.process.is_none() && is_setuid(&ask.command) {
        let note = "the program is setuid or setgid: traced, it has the privileges of its caller";
        document.notes.push(note.to_owned());
    }
    let few = |one: &LoopRow| {
        one.entries.is_some_and(|n| n < LEAST_IN_WINDOW) && one.iterations > Some(0)
    };
    if ask.process.is_some() && document.loops.iter().any(few) {
        document.notes.push(format!(
            "loops that were entered fewer than {LEAST_IN_WINDOW} times in the window have no mean trips: the window cuts \
             executions at its beginning and end"
        ));
    }
    let mut interrupted = counts.interrupted;
    let functions: Vec<_> = chosen.iter().map(|c| (c.name.as_str(), &c.wanted)).collect();
    if let (Some(core), None) = (&ask.branches, interrupted) {
        mispredicted::enter(&mut document, &ask.command, (&functions, plain), core, &signals)?;
    }
    let differs = |before: pmu::Exit| counts.exit.is_some_and(|now| now != before);
    if ask.hot.as_ref().and_then(|found| found.exit).is_some_and(differs) {
        document.notes.push("the counted run ended otherwise than the sampled one".to_owned());
    }
    if let (Some(at), None) = (&ask.values, interrupted) {
        let of = (&counts, at.as_slice());
        interrupted =
            values::enter(&mut document, &ask.command, &functions, of, (plain, &signals))?;
    }
    if ask.loads && interrupted.is_none() {
        let found = loads(&ask.command, &functions, &counts, &signals)?;
        document.loads = found.rows;
        document.timer = found.timer;
        document.cost.extend(found.cost);
        document.notes.extend(found.notes);
        interrupted = found.interrupted;
    }
    if interrupted.is_some() {
        document.notes.push("interrupted: counts are of the run until then".to_owned());
    }
    let own = counts.exit.map_or(i32::from(counts.remains), pmu::Exit::code);
    Ok((document, interrupted.map_or(own, |signal| 128 + signal)))
}

fn ended(exit: pmu::Exit) -> Exit {
    match exit {
        pmu::Exit::Status(status) => Exit::Status(status),
        pmu::Exit::Signal(signal) => Exit::Signal(signal),
    }
}

/// Wall time of a run without probes.
fn plain(command: &Command) -> Result<f64> {
    let begin = Instant::now();
    let mut child = Child::prepare(command)?;
    child.start()?;
    child.reap();
    Ok(begin.elapsed().as_secs_f64())
}

/// Each run's time, beside that of a run without probes.
fn costs(ask: &CountAsk, counts: &Counts, plain: Option<f64>) -> Vec<Cost> {
    let sampled = ask.hot.as_ref().map(|found| found.seconds);
    let cost =
        |run: &str, seconds, plain, probes| Cost { run: run.to_owned(), seconds, plain, probes };
    let mut all: Vec<Cost> = sampled.map(|s| cost("samples", s, plain, 0)).into_iter().collect();
    all.push(cost("counts", counts.wall.as_secs_f64(), plain.or(sampled), counts.probes));
    all
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}

fn refused(of: &Chosen, start: u64, why: &str) -> Refused {
    Refused {
        module: of.wanted.path.display().to_string(),
        function: of.name.clone(),
        start: hex(start),
        reason: why.to_owned(),
    }
}

/// Adds the counts of a function, with the samples of its blocks if it was chosen by them.
fn enter(
    document: &mut Count,
    of: &Chosen,
    found: &FunctionCounts,
    samples: Option<&Vec<(u64, u64)>>,
) {
    let module = of.wanted.path.display().to_string();
    for block in &found.blocks {
        let count = match &block.count {
            Ok(count) => *count,
            Err(why) => {
                document.refused.push(refused(of, block.start, why));
                continue;
            }
        };
        let probe = block.kind.map(|kind| format!("{kind:?}").to_lowercase());
        document.blocks.push(BlockRow {
            module: module.clone(),
            function: of.name.clone(),
            start: hex(block.start),
            end: hex(block.end),
            instructions: block.instructions,
            count,
            how: if probe.is_some() { "placed" } else { "derived" }.to_owned(),
            probe,
            samples: samples.map(|all| {
                let own = all.iter().filter(|(at, _)| (block.start..block.end).contains(at));
                own.map(|(_, number)| number).sum()
            }),
        });
    }
    document.edges.extend(found.edges.iter().map(|edge| EdgeRow {
        module: module.clone(),
        from: hex(edge.from),
        to: hex(edge.to),
        count: edge.count,
    }));
    let executions = |at: u64| {
        let block = found.blocks.iter().find(|block| (block.start..block.end).contains(&at))?;
        block.count.as_ref().ok().copied()
    };
    document.branches.extend(found.branches.iter().map(|branch| BranchRow {
        module: module.clone(),
        function: of.name.clone(),
        address: hex(branch.address),
        executions: executions(branch.address),
        taken: branch.taken,
        not_taken: branch.not_taken,
        kind: "conditional".to_owned(),
        ..BranchRow::default()
    }));
    // A window cuts executions at both ends.
    let least = if document.process.is_some() { LEAST_IN_WINDOW } else { 1 };
    let mean = |entries: Option<u64>, iterations: Option<u64>| {
        entries.zip(iterations).filter(|(n, _)| *n >= least).map(|(n, all)| all as f64 / n as f64)
    };
    document.loops.extend(found.loops.iter().map(|one| LoopRow {
        module: module.clone(),
        function: of.name.clone(),
        head: hex(one.head),
        entries: one.entries,
        iterations: one.iterations,
        trips: Trips { mean: mean(one.entries, one.iterations), ..Trips::default() },
    }));
    document.checked += found.checked;
    let name = &of.name;
    document.contradictions.extend(found.contradictions.iter().map(|c| format!("{name} {c}")));
}

/// The functions that are asked for.
fn chosen(ask: &CountAsk) -> Result<Vec<Chosen>> {
    let modules = match ask.modules.as_slice() {
        [] => match ask.process {
            Some((pid, _)) => vec![executable(pid)?],
            None => vec![program(&ask.command)?],
        },
        given => given.to_vec(),
    };
    let mut all = Vec::new();
    for path in modules {
        let failed = |why: String| {
            Error::failed(format!("the functions of {} are not known", path.display()))
                .because(why)
                .hint("give the ELF file that has the code: --module FILE")
        };
        let path = path.canonicalize().map_err(|e| failed(e.to_string()))?;
        let found = functions(&path).map_err(failed)?;
        all.extend(found.into_iter().map(|named| Chosen::new(&path, named)));
    }
    if ask.functions.is_empty() {
        return Ok(all);
    }
    let is = |one: &Chosen, name: &str| match address(name) {
        Some(address) => one.wanted.range.contains(&address),
        None => {
            let mut names = std::iter::once(&one.name).chain(&one.aliases);
            names.any(|own| function_name::is(own, name))
        }
    };
    for name in &ask.functions {
        if !all.iter().any(|one| is(one, name)) {
            let error = Error::failed(format!("there is no function `{name}` to count"));
            let names = all.iter().map(|one| one.name.as_str());
            let other = function_name::did_you_mean(names, name);
            return Err(error.hint(
                other.unwrap_or_else(|| "--module FILE names the file that has it".to_owned()),
            ));
        }
    }
    all.retain(|one| ask.functions.iter().any(|name| is(one, name)));
    Ok(all)
}

/// The address that stands for the function around it.
fn address(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("0x")?, 16).ok()
}

impl Chosen {
    fn new(path: &Path, named: Named) -> Self {
        let name = named.name.unwrap_or_else(|| hex(named.range.start));
        let wanted = Wanted { path: path.to_owned(), range: named.range };
        Self { name, aliases: named.aliases, wanted }
    }
}

/// Whether it would have other privileges than its caller (execve(2)).
fn is_setuid(command: &Command) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = program(command).ok().and_then(|path| path.metadata().ok());
    metadata.is_some_and(|of| of.mode() & (libc::S_ISUID | libc::S_ISGID) != 0)
}

/// The program that a process executes.
fn executable(pid: i32) -> Result<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).map_err(|error| {
        let failed = Error::not_possible(format!("process {pid} cannot be counted"));
        match error.kind() {
            ErrorKind::NotFound if !Path::new(&format!("/proc/{pid}")).exists() => {
                Error::failed(format!("there is no process {pid}"))
            }
            ErrorKind::NotFound => failed.because("it is a thread of the kernel, or has ended"),
            _ => failed.because(error).hint("it is another user's: run as that user, or as root"),
        }
    })
}

/// The command's own program.
fn program(command: &Command) -> Result<PathBuf> {
    let name = command.argv.first().cloned().unwrap_or_default();
    if name.as_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let all = paths.as_bytes().split(|byte| *byte == b':').map(|p| Path::new(OsStr::from_bytes(p)));
    all.map(|folder| folder.join(&name)).find(|path| path.is_file()).ok_or_else(|| {
        Error::failed(format!("cannot find the program {}", name.display()))
            .hint("give its path, as in ./program")
    })
}
