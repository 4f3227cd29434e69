//! A block with the values of its running program: what to capture, and what a measurement takes
//! of it.

use crate::block::Notes;
use crate::loop_path::{executed, left_to, most_frequent};
use crate::typical::{Typical, Untypical, typical};
use bench::{Init, Options, Snapshot as Values};
use isa::deps::memory::InitialValues;
use isa::program::{Around, loop_around, loop_region};
use pmu::Command;
pub use probe::capture::Snapshot;
use probe::capture::{
    Afterwards, Breakpoints, End, Entry, Limits, Place, Request, SCHEMA, Stop, capture, is_program,
};
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tma::text::several;
use tma::{Error, Result};

/// Longest document of a capture, in bytes: its pages as digits, and room for paths.
pub const LONGEST: usize = 256 << 20;

/// Paths of a loop with equal iterations: through it, and out of it.
const ONE_WAY: usize = 2;

/// A block to capture, as the user names it.
#[derive(Debug, Clone)]
pub struct Block<'a> {
    /// The program or shared library.
    pub file: &'a Path,
    /// Its addresses there (p_vaddr).
    pub range: Range<u64>,
    /// Arguments of the program; for a library the command that loads it.
    pub arguments: &'a [OsString],
    /// The entry, from 1; by default one of the first thousand.
    pub entry: Option<u64>,
    /// Executions of the loop to capture, if no entry is given.
    pub executions: usize,
    /// Whether the first of them is to be a typical one, for which the program is run twice before.
    pub typical: bool,
}

/// Runs the block's program and captures the block, with the loop around it.
///
/// # Errors
/// The program cannot be run or traced, or does not enter the block.
pub fn run(block: &Block<'_>) -> Result<Snapshot> {
    let data = tma::files::read(block.file, tma::files::LONGEST_PROGRAM)
        .map_err(|e| tma::error::unreadable(block.file, &e))?;
    let around = loop_around(&data, block.range.start);
    let region = around.as_ref().map(|around| around.region.clone());
    let request = Request {
        command: Command {
            argv: command(block, &data)?,
            stdout: pmu::Stdout::Stderr,
            ..pmu::Command::default()
        },
        image: block.file.to_owned(),
        place: Place::Address(block.range.start),
        region: region.unwrap_or_else(|| [block.range.clone()].to_vec()),
        entry: block.entry.map_or(Entry::Auto, Entry::Number),
        executions: block.executions,
        limits: Limits::default(),
        breakpoints: Breakpoints::Auto,
        afterwards: Afterwards::Kill,
        stop: Stop::default(),
    };
    if !block.typical {
        return capture(&request);
    }
    let chosen = match around.filter(|around| around.head.start == block.range.start) {
        Some(around) => typical(&request.command, block.file, &around)?,
        None => Err(Untypical::Inside),
    };
    capture_typical(request, chosen)
}

/// Captures a chosen execution. If there is none, or the program does otherwise now, the one that would be
/// captured without a choice.
fn capture_typical(
    request: Request,
    chosen: std::result::Result<Typical, Untypical>,
) -> Result<Snapshot> {
    let why = match chosen {
        Err(why) => why,
        Ok(chosen) => {
            let entry = Entry::Start(chosen.entry);
            match capture(&Request { entry, ..request.clone() }) {
                Ok(found) if has_trips(&found, chosen.trips) => {
                    return Ok(Snapshot { chosen: Some(chosen.text), ..found });
                }
                Ok(found) => Untypical::TripsDiffer(chosen.trips, found.walk.trips),
                Err(error) => Untypical::Run(error),
            }
        }
    };
    let found = capture(&request)?;
    Ok(Snapshot { chosen: Some(format!("no typical execution was chosen: {why}")), ..found })
}

/// Whether a capture may be of an execution with this many trips: one that was not followed to its end has at least
/// those that were seen.
fn has_trips(found: &Snapshot, trips: u64) -> bool {
    match found.walk.end {
        End::Left => found.walk.trips == trips,
        _ => found.walk.trips <= trips,
    }
}

/// Runs a command and captures the loop `around` of the program or library `file` where it is entered
/// within these limits, or until it is to stop.
///
/// # Errors
/// As [`run`].
pub fn of_command(
    file: &Path,
    around: &Around,
    command: &Command,
    limits: Limits,
    stop: Stop,
) -> Result<Snapshot> {
    capture(&Request {
        command: command.clone(),
        image: file.to_owned(),
        place: Place::Address(around.head.start),
        region: around.region.clone(),
        entry: Entry::Auto,
        executions: 1,
        limits,
        breakpoints: Breakpoints::Auto,
        afterwards: Afterwards::Kill,
        stop,
    })
}

/// The program with its arguments; for a library the arguments are the command.
fn command(block: &Block<'_>, data: &[u8]) -> Result<Vec<OsString>> {
    if is_program(data) {
        // A name without a slash would be searched for in PATH.
        let path = block.file.parent().filter(|folder| folder.as_os_str().is_empty());
        let file = path.map_or_else(|| block.file.to_owned(), |_| Path::new(".").join(block.file));
        let program = PathBuf::into_os_string(file);
        return Ok([&[program], block.arguments].concat());
    }
    if block.arguments.is_empty() {
        return Err(Error::usage(format!("{} is not a program", block.file.display()))
            .because("a shared library is captured in a command that loads it")
            .hint("give the command: `tdtool block LIBRARY:FUNCTION -- COMMAND`"));
    }
    Ok(block.arguments.to_vec())
}

/// Reads the document of a capture.
///
/// # Errors
/// It is not such a document.
pub fn read(text: &str) -> Result<Snapshot> {
    let failed = || Error::failed("cannot read the captured values");
    let snapshot: Snapshot = serde_json::from_str(text).map_err(|e| failed().because(e))?;
    if snapshot.schema != SCHEMA {
        return Err(failed()
            .because(format!("the schema is `{}`, not `{SCHEMA}`", snapshot.schema))
            .hint("give a file that --save-values wrote"));
    }
    Ok(snapshot)
}

/// The general-purpose registers as initial values.
pub fn registers(snapshot: &Snapshot) -> Vec<(Init, u64)> {
    (0..).map(Init::Register).zip(snapshot.registers.0).collect()
}

/// Registers and memory as initial values of a dependency analysis.
pub fn initial_values(snapshot: &Snapshot) -> InitialValues {
    let words = |address: u64, page: &[u8; 4096]| {
        let words = page.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        (address..).step_by(8).zip(words).collect::<Vec<_>>()
    };
    InitialValues {
        registers: snapshot.registers.0.map(Some),
        memory: snapshot.pages.0.iter().flat_map(|(at, page)| words(*at, page)).collect(),
        ..InitialValues::default()
    }
}

/// Code to measure with the values of a capture.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// Bytes of the block.
    pub length: usize,
    /// The code of its loop: p_vaddr and bytes.
    pub code: Vec<(u64, Vec<u8>)>,
    /// Whether that loop as a whole is asked for, and has several blocks.
    pub whole: bool,
}

/// Has a measurement start with the values of a capture; its own `--init` comes last and takes
/// precedence.
pub fn apply(snapshot: &Snapshot, subject: Subject, options: &mut Options) {
    let given = std::mem::take(&mut options.init);
    options.init = registers(snapshot).into_iter().chain(given).collect();
    let Subject { length, code, whole } = subject;
    let with_code = |snapshot: &Snapshot| {
        let executed = executed(&snapshot.walk, snapshot.address, &code);
        let left_to = left_to(&snapshot.walk, snapshot.address, &code);
        Values { length, code: code.clone(), executed, left_to, whole, ..values(snapshot) }
    };
    let others = snapshot.others.iter().map(with_code).collect();
    let path = whole.then(|| most_frequent(&snapshot.walk, snapshot.address, &code));
    options.snapshot = Some(Arc::new(Values { others, path, ..with_code(snapshot) }));
}

/// The code of the loop around the block of `range` in an ELF file, or of the block: p_vaddr and bytes.
pub fn code(data: &[u8], range: &Range<u64>) -> Vec<(u64, Vec<u8>)> {
    let around = loop_region(data, range.start).unwrap_or_else(|| [range.clone()].to_vec());
    isa::program::read_ranges(data, &around).unwrap_or_default()
}

/// The capture as the sandbox takes it.
fn values(snapshot: &Snapshot) -> Values {
    let walk = &snapshot.walk;
    let before_call = walk.before_call.map(|before| (before.iterations, before.registers));
    let followed = || Some((walk.sequence.len() as u64, walk.followed_to?));
    Values {
        address: snapshot.address,
        running_at: snapshot.running_at,
        entry: snapshot.entry,
        paths: walk.paths.len(),
        registers: snapshot.registers.0,
        flags: snapshot.flags,
        mxcsr: snapshot.vectors.mxcsr,
        vectors: snapshot.vectors.zmm.clone(),
        masks: snapshot.vectors.masks.clone(),
        pages: snapshot.pages.0.clone(),
        nearby: walk.nearby.iter().copied().collect(),
        fs_base: snapshot.fs_base,
        gs_base: snapshot.gs_base,
        // The last one may not be complete.
        stepped: walk.sequence.len().saturating_sub(1) as u64,
        left_with: walk.left_with.map(|registers| registers.0),
        at_least: walk.trips,
        before_call: before_call.map(|(trips, _)| trips),
        is_inside: !snapshot.from_outside,
        touched_lines: walk.lines,
        same_set: walk.same_set,
        followed_to: before_call.or_else(followed).map(|(trips, registers)| (trips, registers.0)),
        trips: (walk.end == End::Left).then_some(walk.trips),
        ..Values::default()
    }
}

/// Effects that repeating an execution leaves out: misses, where it has data, and mispredictions, where it has paths.
fn left_out(snapshot: &Snapshot) -> Option<String> {
    let walk = &snapshot.walk;
    let (here, costs, options) = match (walk.lines != Some(0), walk.paths.len() > ONE_WAY) {
        (true, false) => ("its data is in the caches", "misses", "--loads"),
        (false, true) => ("its branches are learned", "mispredictions", "--branches"),
        (true, true) => (
            "its data is in the caches and its branches are learned",
            "misses and mispredictions",
            "--loads --branches",
        ),
        (false, false) => return None,
    };
    Some(format!(
        "repeated, so that {here}: {costs} of the program are not in this number; `tdtool count {options}` shows them"
    ))
}

/// Effects that the time leaves out, values that are the program's own, and what the program did with them.
pub fn notes(snapshot: &Snapshot) -> Notes {
    let walk = &snapshot.walk;
    let from = format!(
        "values captured at entry {} of the block in `{}`; straight copies have its general-purpose \
         registers only",
        snapshot.entry,
        snapshot.command.join(" ")
    );
    let trips = |what: &str| several(walk.trips, what);
    let trips = match (walk.end, snapshot.from_outside) {
        (End::Left, true) => trips("trip"),
        (End::Left, false) => format!("{}, from the middle of the loop", trips("more trip")),
        (..) => format!("at least {}", trips("trip")),
    };
    let did = format!(
        "in the program, from there: {trips} on {}, {} captured",
        several(walk.paths.len(), "distinct path"),
        several(snapshot.pages.0.len(), "page")
    );
    let mut origin = vec![from, did];
    origin.extend(snapshot.chosen.clone());
    if walk.calls > 0 {
        let are = if walk.calls == 1 { "was" } else { "were" };
        origin.push(format!("{} {are} not followed", several(walk.calls, "call")));
    }
    if !snapshot.others_stopped {
        origin.push("a thread of the program could not be stopped meanwhile".to_owned());
    }
    Notes { of_time: left_out(snapshot).into_iter().collect(), origin }
}
