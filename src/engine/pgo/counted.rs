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
    /// What was recorded of jumps and calls in all runs.
    pub targets: Targets,
    /// Functions and blocks that could not be counted in a run, and why.
    pub refused: BTreeMap<Address, String>,
    pub notes: Vec<String>,
}

impl Counted {
    /// The counts of this module, else of the only one. It is known by its build-id, else by its path.
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
        if !Path::new(&module).exists() {
            return Err(Error::failed(format!("{module} is not here"))
                .because("counts need the code that was counted")
                .hint("--module FILE names it where it is now"));
        }
        let build_id = build_id_of(&module);
        let mut found = Self { module, build_id, ..Self::default() };
        let mut own: Vec<(&Count, &str)> = Vec::new();
        let mut without = 0;
        for one in all {
            let paths = found.paths_in(one)?;
            without += usize::from(paths.is_empty());
            own.extend(paths.into_iter().map(|path| (one, path)));
        }
        if own.is_empty() {
            return Err(found.none(all));
        }
        found.runs = all.len() - without;
        let mut runs: BTreeMap<u64, usize> = BTreeMap::new();
        for (one, path) in &own {
            for block in one.blocks.iter().filter(|b| b.module == *path) {
                let sum = found.blocks.entry(block.start.0).or_default();
                *sum = sum.saturating_add(block.count);
                if *sum > MOST {
                    return Err(too_many("block", block.start, *sum));
                }
                *runs.entry(block.start.0).or_default() += 1;
                if block.how == How::Derived {
                    found.derived.insert(block.start.0);
                }
            }
            for row in one.targets.iter().filter(|row| row.module == *path) {
                let seen =
                    found.targets.entry(row.from.0).or_default().entry(row.to.0).or_default();
                *seen = seen.saturating_add(row.count);
                if *seen > MOST {
                    return Err(too_many("jump", row.from, *seen));
                }
            }
            found.note(one, path);
        }
        found.blocks.retain(|start, _| runs.get(start) == Some(&own.len()));
        if found.blocks.is_empty() {
            return Err(Error::failed(format!("nothing is known of {}", found.module))
                .because(format!("no block of it was counted in each of the {} runs", own.len()))
                .hint("make a profile of runs that execute the same code"));
        }
        if without > 0 {
            found.notes.push(format!("{without} of {} inputs have no counts of it", all.len()));
        }
        Ok(found)
    }

    /// Paths of the module in a document.
    ///
    /// # Errors
    /// At its path another build was counted.
    fn paths_in<'c>(&self, one: &'c Count) -> Result<Vec<&'c str>> {
        let counted: BTreeSet<&str> = one.blocks.iter().map(|b| b.module.as_str()).collect();
        let has_its_id = |path: &&str| {
            let id = id_in(one, path).flatten();
            id.is_some() && id == self.build_id.as_deref()
        };
        let mut found: Vec<&str> = counted.iter().copied().filter(has_its_id).collect();
        if let (true, Some(path)) = (found.is_empty(), counted.get(self.module.as_str())) {
            match id_in(one, path) {
                Some(was) if was != self.build_id.as_deref() => return Err(self.other(was)),
                _ => found.push(path),
            }
        }
        Ok(found)
    }

    /// Why there are no counts of the module.
    fn none(&self, all: &[Count]) -> Error {
        let name = |path: &str| Path::new(path).file_name().map(ToOwned::to_owned);
        let mut rows = all.iter().flat_map(|one| &one.modules);
        let named =
            rows.find(|row| row.build_id.is_some() && name(&row.path) == name(&self.module));
        named.map_or_else(
            || {
                Error::failed(format!("there are no counts of {}", self.module))
                    .hint("--module FILE names the program or library that is optimised")
            },
            |row| self.other(row.build_id.as_deref()),
        )
    }

    /// Counts are of another build.
    fn other(&self, was: Option<&str>) -> Error {
        let is = self.build_id.as_deref();
        let [was, is] = [was, is].map(|id| id.unwrap_or("none"));
        changed(&self.module, format!("its build-id was {was}, and is {is}"))
    }

    /// Notes limits of a run.
    fn note(&mut self, one: &Count, path: &str) {
        let mut notes = Vec::new();
        match (one.interrupted, one.exit) {
            (Some(signal), _) => {
                notes.push(format!("a run was interrupted by signal {signal}: counts until then"));
            }
            (None, Some(Exit::Signal(signal))) => {
                notes.push(format!("a run was ended by signal {signal}: counts until then"));
            }
            (None, Some(Exit::Status(status))) if status != 0 => {
                notes.push(format!("a run ended with exit status {status}"));
            }
            _ => {}
        }
        notes.extend(one.notes.iter().cloned());
        if let [first, ..] = one.contradictions.as_slice() {
            let number = one.contradictions.len();
            notes.push(format!("{number} of {} sums of counts disagree: {first}", one.checked));
        }
        let refused = one.refused.iter().filter(|row| row.module == path);
        self.refused.extend(refused.map(|row| (row.start, row.reason.clone())));
        notes.retain(|note| !self.notes.contains(note));
        self.notes.append(&mut notes);
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
fn too_many(what: &str, at: Address, count: u64) -> Error {
    Error::failed(format!("the {what} at {at} has {count} executions"))
        .because(format!("counts above {MOST} are not exact"))
        .hint("merge fewer or shorter runs")
}

/// The build-id of a file, in hexadecimal digits.
pub(super) fn build_id_of(path: &str) -> Option<String> {
    build_id::of_file(Path::new(path)).map(|id| hexadecimal(&id))
}

/// The build-id of a module of a document: `None` if it does not tell, `Some(None)` if there was none.
fn id_in<'c>(one: &'c Count, path: &str) -> Option<Option<&'c str>> {
    one.modules.iter().find(|row| row.path == path).map(|row| row.build_id.as_deref())
}

/// The only module of all counts: of the paths of one build that which still has it, else the first.
fn only(all: &[Count]) -> Result<String> {
    let mut modules: BTreeSet<(&str, Option<&str>)> = BTreeSet::new();
    for one in all {
        let counted = one.blocks.iter().map(|block| block.module.as_str());
        modules.extend(counted.map(|path| (path, id_in(one, path).flatten())));
    }
    let paths: BTreeSet<&str> = modules.iter().map(|(path, _)| *path).collect();
    // By build-id, else by path.
    let builds: BTreeSet<&str> = modules.iter().map(|(path, id)| id.unwrap_or(path)).collect();
    match (paths.len().min(builds.len()), paths.first()) {
        (_, None) => Err(Error::failed("there are no counts to make a profile of")
            .because("no block of the program was counted")
            .hint("`tdtool count -- COMMAND` shows why; --module FILE names a library, or the program that a script runs")),
        (1, Some(first)) => {
            let is_there =
                |(path, id): &&(&str, Option<&str>)| *id == build_id_of(path).as_deref();
            Ok(modules.iter().find(is_there).map_or(*first, |(path, _)| *path).to_owned())
        }
        _ => Err(Error::failed("a profile is of one module")
            .because(format!(
                "there are counts of {}",
                paths.into_iter().collect::<Vec<_>>().join(", ")
            ))
            .hint("choose one with --module FILE")),
    }
}
