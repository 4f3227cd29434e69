//! Documents of counts of one module, added up.

use pmu::build_id;
use probe::flow::Seen;
use profile::files::hexadecimal;
use report::documents::Exit;
use report::documents::count::Count;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tma::{Error, Result};

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
    pub notes: Vec<String>,
}

impl Counted {
    /// The counts of this module, else of the only one.
    ///
    /// # Errors
    /// There are none, or several modules; the file is of another build.
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
                *runs.entry(block.start.0).or_default() += 1;
            }
            if let Some(Exit::Signal(signal)) = one.exit {
                found.notes.push(format!("a run was ended by signal {signal}: counts until then"));
            }
        }
        found.blocks.retain(|start, _| runs.get(start) == Some(&own.len()));
        if all.len() > own.len() {
            let without = all.len() - own.len();
            found.notes.push(format!("{without} of {} inputs have no counts of it", all.len()));
        }
        Ok(found)
    }

    /// Refuses counts of another build.
    fn check(&self, one: &Count) -> Result<()> {
        let row = one.modules.iter().find(|row| row.path == self.module);
        match row.and_then(|row| row.build_id.as_ref()) {
            Some(counted) if Some(counted) != self.build_id.as_ref() => {
                Err(Error::failed(format!("{} has changed since it was counted", self.module))
                    .because(format!(
                        "its build-id was {counted}, and is {}",
                        self.build_id.as_deref().unwrap_or("none")
                    ))
                    .hint("count this build, or put the old file back"))
            }
            _ => Ok(()),
        }
    }
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
