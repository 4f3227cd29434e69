//! Hot blocks in isolation, and the loops around them with the program's own values, captured in further runs of the
//! command.

use crate::block::Measurer;
use crate::captured::{self, Subject};
use crate::core_model::CoreModel;
use bench::{Options, Status};
use isa::code::Block;
use isa::program::{Location, loop_around, read_location};
use pmu::Command;
use probe::capture::{Limits, Stop};
use profile::hot::{HotBlock, Profile};
use report::documents::report_code::{Clean, WithValues};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tma::Result;

/// How long a loop may wait for a core that nothing else uses.
const BUDGET: Duration = Duration::from_secs(2);
/// Longest time until a run reaches the loop, after which it is given up: this multiple of the first run's, plus
/// seconds.
const FIRST_ENTRY: (f64, f64) = (3.0, 10.0);
/// How long entries are counted from the first one on.
const ENTRIES: Duration = Duration::from_secs(2);

/// Measures the loops of one report; several hot blocks may be in the same.
pub struct Loops<'a> {
    model: &'a CoreModel,
    command: Command,
    first_entry: Duration,
    known: HashMap<(PathBuf, u64), WithValues>,
    /// Further runs of the command.
    pub runs: usize,
}

impl<'a> Loops<'a> {
    /// The loops of a command whose first run took `seconds`.
    pub fn new(model: &'a CoreModel, command: &Command, seconds: Option<f64>) -> Self {
        let first_entry = FIRST_ENTRY.0 * seconds.unwrap_or(0.0).clamp(0.0, 60.0) + FIRST_ENTRY.1;
        Self {
            model,
            // A cut-off second output does not belong where the first one went.
            command: Command { stdout: pmu::Stdout::Dropped, ..command.clone() },
            first_entry: Duration::from_secs_f64(first_entry),
            known: HashMap::new(),
            runs: 0,
        }
    }

    /// The innermost loop around a hot block of the file at `path`; `None` if it is in none.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn measured(&mut self, path: &Path, block: &HotBlock) -> Result<Option<WithValues>> {
        if block.loop_depth == 0 {
            return Ok(None);
        }
        let not = |why: String| WithValues { reason: Some(why), ..WithValues::default() };
        let data = match tma::files::read(path, tma::files::LONGEST_PROGRAM) {
            Ok(data) => data,
            Err(error) => return Ok(Some(not(format!("the program cannot be read: {error}")))),
        };
        let Some(around) = loop_around(&data, block.start) else {
            return Ok(Some(not("its loop was not found in the file".to_owned())));
        };
        let key = (path.to_owned(), around.head.start);
        if let Some(known) = self.known.get(&key) {
            return Ok(Some(known.clone()));
        }
        let of = WithValues {
            head: Some(around.head.start.into()),
            blocks: around.blocks,
            ..WithValues::default()
        };
        let found = self.one(path, &data, &around, of)?;
        self.known.insert(key, found.clone());
        Ok(Some(found))
    }

    fn one(
        &mut self,
        path: &Path,
        data: &[u8],
        around: &isa::program::Around,
        of: WithValues,
    ) -> Result<WithValues> {
        let not = |why: String| WithValues { reason: Some(why), ..of.clone() };
        let range = Location::Range(around.head.start, around.head.end);
        let block = read_location(data, &range).and_then(|l| Block::decode(&l.bytes));
        let block = match block {
            Ok(block) => block,
            Err(error) => return Ok(not(error.to_string())),
        };
        let code = captured::code(data, &around.head);
        if let Err(why) = bench::can_be_moved(&code, around.head.start) {
            return Ok(not(why.to_string()));
        }
        self.runs += 1;
        let limits = Limits { first_entry: self.first_entry, time: ENTRIES, ..Limits::default() };
        let snapshot =
            match captured::of_command(path, around, &self.command, limits, Stop::default()) {
                Ok(snapshot) => snapshot,
                Err(error) => {
                    return Ok(not(error.cause().unwrap_or(error.what()).to_owned()));
                }
            };
        let mut options = Options { budget: BUDGET, ..Options::default() };
        let subject = Subject { length: block.bytes.len(), code, whole: true };
        captured::apply(&snapshot, subject, &mut options);
        let result = Measurer::new(options, self.model).measure(&block, false)?;
        let throughput = result.throughput.as_ref();
        Ok(WithValues {
            status: Some(result.status),
            reason: result.reason.clone().filter(|_| result.status != Status::Ok),
            cycles: throughput.map(|t| t.cycles),
            range: throughput.map(|t| (t.low, t.high)),
            clock: throughput.map(|t| t.clock.to_owned()),
            entry: Some(snapshot.entry),
            iterations: Some(snapshot.walk.trips),
            ..of
        })
    }
}

/// The block in isolation, without a call, return or indirect jump at its end.
pub(super) fn measured(
    measurer: &mut Measurer,
    profile: &mut Profile,
    block: &HotBlock,
) -> Result<Clean> {
    let not =
        |reason: String| Clean { status: Status::Failed, reason: Some(reason), ..Clean::default() };
    let bytes = match profile.code(block) {
        Ok(bytes) => bytes,
        Err(why) => return Ok(not(why.to_string())),
    };
    let decoded = match Block::decode(&bytes) {
        Ok(decoded) => decoded,
        Err(error) => return Ok(not(error.to_string())),
    };
    let (decoded, without) = match decoded.without_exit() {
        Ok((rest, left)) => (rest, left.map(|last| last.text.clone())),
        Err(why) => return Ok(not(why.to_string())),
    };
    let result = measurer.measure(&decoded, false)?;
    let throughput = result.throughput.as_ref();
    Ok(Clean {
        status: result.status,
        reason: result.reason.clone().filter(|_| result.status != Status::Ok),
        cycles: throughput.map(|t| t.cycles),
        range: throughput.map(|t| (t.low, t.high)),
        looped: result.forms.as_ref().and_then(|f| f.looped.trusted()),
        clock: throughput.map(|t| t.clock.to_owned()),
        violated: result.violated().iter().map(|one| one.word().to_owned()).collect(),
        without,
        bound: result.hierarchy.bound(),
    })
}
