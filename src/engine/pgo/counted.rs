//! Documents of counts of one module, added up.

use pmu::build_id;
use probe::flow::Seen;
use profile::files::hexadecimal;
use report::documents::Exit;
use report::documents::count::{Count, How};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tma::{Address, Error, Result};

/// Largest count: beyond it, a number of 64 bits in floating point is not exact.
const MOST: u64 = 1 << 53;

/// By the address of a jump or call, its recorded targets in the module.
pub(super) type Targets = BTreeMap<u64, Seen>;

/// The counts of a module in all runs together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Counted {
    /// Path of its file.
    pub module: String,
    /// Its build-id.
    pub build_id: Option<String>,
    /// How many runs counted it.
    pub runs: usize,
    /// By first addresses of blocks: those with a count in each of the runs.
    pub blocks: BTreeMap<u64, u64>,
    /// Those of these that had no probe in a run: their counts follow from others.
    pub derived: BTreeSet<u64>,
    /// Functions and blocks that could not be counted in a run, and why.
    pub refused: BTreeMap<Address, String>,
    pub notes: Vec<String>,
}

impl Counted {
    /// The counts of this module, else of the only one.
    ///
    /// # Errors
    /// There are none, or several modules; the file is of another build; a count is not exact.
    pub fn of(all: &[Count], module: Option<&Path>) -> Result<Self> {
        let module = match module {
            Some(path) => tma::files::resolved(path)
                .map_err(|error| tma::error::unreadable(path, &error))?
                .display()
                .to_string(),
            None => only(all)?,
        };
        let own: Vec<&Count> =
            all.iter().filter(|one| one.blocks.iter().any(|b| b.module == module)).collect();
        if own.is_empty() {
            return Err(Error::failed(format!("there are no counts of {module}"))
                .hint("--module FILE names the program or library that is optimised"));
        }
        let mut found = Self { runs: own.len(), module, ..Self::default() };
        found.build_id = build_id::of_file(Path::new(&found.module)).map(|id| hexadecimal(&id));
        let mut runs: BTreeMap<u64, usize> = BTreeMap::new();
        for one in &own {
            found.check(one)?;
            for block in one.blocks.iter().filter(|b| b.module == found.module) {
                let sum = found.blocks.entry(block.start.0).or_default();
                *sum = sum.saturating_add(block.count);
                if *sum > MOST {
                    return Err(too_many(block.start, *sum));
                }
                *runs.entry(block.start.0).or_default() += 1;
                if block.how == How::Derived {
                    found.derived.insert(block.start.0);
                }
            }
            found.note(one);
        }
        found.blocks.retain(|start, _| runs.get(start) == Some(&own.len()));
        if found.blocks.is_empty() {
            return Err(Error::failed(format!("nothing is known of {}", found.module))
                .because(format!("no block of it was counted in each of the {} runs", own.len()))
                .hint("make a profile of runs that execute the same code"));
        }
        if all.len() > own.len() {
            let without = all.len() - own.len();
            found.notes.push(format!("{without} of {} inputs have no counts of it", all.len()));
        }
        Ok(found)
    }

    /// Notes limits of a run.
    fn note(&mut self, one: &Count) {
        let mut notes = Vec::new();
        match (one.interrupted, one.exit) {
            (Some(signal), _) => {
                notes.push(format!("a run was interrupted by signal {signal}: counts until then"));
            }
            (None, Some(Exit::Signal(signal))) => {
                notes.push(format!("a run was ended by signal {signal}: counts until then"));
            }
            _ => {}
        }
        notes.extend(one.notes.iter().cloned());
        if let [first, ..] = one.contradictions.as_slice() {
            let number = one.contradictions.len();
            notes.push(format!("{number} of {} sums of counts disagree: {first}", one.checked));
        }
        let refused = one.refused.iter().filter(|row| row.module == self.module);
        self.refused.extend(refused.map(|row| (row.start, row.reason.clone())));
        notes.retain(|note| !self.notes.contains(note));
        self.notes.append(&mut notes);
    }

    /// Refuses counts of another build.
    fn check(&self, one: &Count) -> Result<()> {
        let Some(row) = one.modules.iter().find(|row| row.path == self.module) else {
            return Ok(());
        };
        if row.build_id == self.build_id {
            return Ok(());
        }
        let [was, is] = [&row.build_id, &self.build_id].map(|id| id.as_deref().unwrap_or("none"));
        Err(changed(&self.module, format!("its build-id was {was}, and is {is}")))
    }

    /// Refuses counts of blocks that the code does not have: of another build without a build-id.
    ///
    /// # Errors
    /// There are such.
    pub fn check_blocks(&self, is_block: impl Fn(u64) -> bool) -> Result<()> {
        match self.blocks.keys().find(|start| !is_block(**start)) {
            Some(start) => {
                let why = format!("a block was counted at {}, where none begins", Address(*start));
                Err(changed(&self.module, why))
            }
            None => Ok(()),
        }
    }
}

/// The file is not that which was counted.
fn changed(module: &str, why: String) -> Error {
    Error::failed(format!("{module} has changed since it was counted"))
        .because(why)
        .hint("count this build, or put the old file back")
}

/// A count is not exact.
fn too_many(at: Address, count: u64) -> Error {
    Error::failed(format!("the block at {at} has {count} executions"))
        .because(format!("counts above {MOST} are not exact"))
        .hint("merge fewer or shorter runs")
}

/// The only module of all counts.
fn only(all: &[Count]) -> Result<String> {
    let modules: BTreeSet<&str> =
        all.iter().flat_map(|one| &one.blocks).map(|block| block.module.as_str()).collect();
    match modules.iter().copied().collect::<Vec<_>>().as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => Err(Error::failed("there are no counts to make a profile of")
            .because("no block of the program was counted")
            .hint("`tdtool count -- COMMAND` shows why; --module FILE names a library, or the program that a script runs")),
        several => Err(Error::failed("a profile is of one module")
            .because(format!("there are counts of {}", several.join(", ")))
            .hint("choose one with --module FILE")),
    }
}
