//! Advised prefetches put into the source, built and measured: each stays if the program gains by it, and the source
//! is as it was otherwise.
//!
//! | file | concern |
//! |---|---|
//! | `ask` | what is built and run |
//! | `places` | advised loads by their places in the source |
//! | `insertion` | the statement that prefetches, at its place |
//! | `harmless` | calls that may be made ahead |
//! | `counting` | loops that count, and their conditions |
//! | `syntax`, `tokens` | loops and memory accesses of C and C++ |
//! | `files` | files that are changed for a while |
//! | `trial` | builds and runs of one place: distances around the advised one |
//! | `outputs` | what runs write, compared |
//! | `patch` | the change as a patch |

mod ask;
mod counting;
mod files;
mod harmless;
mod insertion;
mod outputs;
mod patch;
mod places;
mod syntax;
#[cfg(test)]
mod tests;
mod tokens;
mod trial;

pub use ask::{ApplyAsk, build};

use ask::Stop;
use files::Changed;
use places::{Place, places};
use report::documents::applied::AppliedRow;
use report::documents::prefetch::Prefetch;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tma::{Error, Result};
use trial::Trial;

/// What came of it.
#[derive(Debug, Default)]
pub struct Applied {
    /// The places.
    pub rows: Vec<AppliedRow>,
    /// What is kept, as a patch for the current folder.
    pub patch: String,
    /// The signal that ended it early.
    pub interrupted: Option<i32>,
}

/// Puts the advised prefetches of a document into the source, one place after the other, and keeps those that gain.
/// `progress` is called with what is being done.
///
/// # Errors
/// The source could not be restored.
pub fn apply(
    ask: &ApplyAsk<'_>,
    document: &Prefetch,
    progress: &mut dyn FnMut(&str),
) -> Result<Applied> {
    let (all, unknown) = places(document);
    let mut applied = Applied::default();
    let mut open = Open::default();
    for mut place in all.into_iter().take(ask.most) {
        match open.place(ask, &mut place, progress) {
            Ok(is_new) if !is_new => continue,
            Ok(_) => {}
            Err(Stop::Failed(error)) => {
                let remedy = error.remedy().map_or(String::new(), |remedy| format!("; {remedy}"));
                place.row.reason = Some(format!("{error}{remedy}"));
            }
            Err(Stop::Signal(signal)) => {
                applied.interrupted = Some(signal);
                place.row.reason = Some("interrupted".to_owned());
            }
        }
        applied.rows.push(place.row);
        open.each(Changed::restore)?;
        if applied.interrupted.is_some() {
            break;
        }
    }
    applied.rows.extend(unknown);
    let here = here()?;
    for (path, file) in &open.files {
        if let (Ok(path), Ok(first), Ok(accepted)) = (
            path.strip_prefix(&here),
            std::str::from_utf8(&file.first),
            std::str::from_utf8(&file.accepted),
        ) && first != accepted
        {
            applied.patch += &patch::patch(&path.to_string_lossy(), first, accepted);
        }
    }
    if ask.restores {
        open.forget();
    }
    open.each(Changed::end)?;
    Ok(applied)
}

/// Before anything is built: nothing of an earlier run is left below the current folder.
///
/// # Errors
/// Something is.
pub fn check() -> Result<()> {
    files::check(&here()?)
}

fn here() -> Result<PathBuf> {
    let here = std::env::current_dir().and_then(std::path::absolute);
    here.and_then(std::fs::canonicalize)
        .map_err(|e| Error::failed("the current folder is not known").because(e))
}

/// Endings of files that may be changed.
const ENDINGS: [&str; 14] =
    ["c", "cc", "cpp", "cxx", "c++", "C", "h", "hh", "hpp", "hxx", "inc", "inl", "ipp", "tcc"];

/// The files that were changed so far: sources, and programs.
#[derive(Default)]
struct Open {
    files: BTreeMap<PathBuf, Changed>,
    /// Lines that were added to a source, in order of time.
    added: Vec<(PathBuf, (u32, u32))>,
    /// Statements that were tried.
    known: BTreeSet<(PathBuf, String)>,
}

impl Open {
    /// Tries a place, unless the same statement was tried.
    fn place(
        &mut self,
        ask: &ApplyAsk<'_>,
        place: &mut Place,
        progress: &mut dyn FnMut(&str),
    ) -> std::result::Result<bool, Stop> {
        let path = source_of(place)?;
        let at = below(&here()?, &place.module, "its program")?;
        let mut source = self.take(&path)?;
        let mut module = match self.take(&at) {
            Ok(module) => module,
            Err(error) => {
                self.files.insert(path, source);
                return Err(error);
            }
        };
        let own = self.added.iter().filter(|(of, _)| *of == path);
        for (_, (line, more)) in own {
            place.wanted.line += if place.wanted.line >= *line { *more } else { 0 };
        }
        let before = source.accepted.clone();
        let mut trial = Trial { ask, source: &mut source, module: &mut module, progress };
        let done =
            trial.place(place, |statement| self.known.insert((path.clone(), statement.to_owned())));
        let texts = [&before, &source.accepted].map(|bytes| String::from_utf8_lossy(bytes));
        if texts[0] != texts[1] {
            self.added.push((path.clone(), patch::added(&texts[0], &texts[1])));
        }
        self.files.extend([(path, source), (at, module)]);
        done
    }

    fn take(&mut self, path: &Path) -> std::result::Result<Changed, Stop> {
        Ok(self.files.remove(path).map_or_else(|| Changed::of(path), Ok)?)
    }

    /// Programs first: the source is newer then, and the next build is of it.
    fn each(&mut self, what: fn(&mut Changed) -> Result<()>) -> Result<()> {
        let mut all: Vec<&mut Changed> = self.files.values_mut().collect();
        all.sort_by_key(|file| is_text(&file.path));
        all.into_iter().try_for_each(what)
    }

    /// Nothing is to stay.
    fn forget(&mut self) {
        for file in self.files.values_mut() {
            file.accepted = file.first.clone();
        }
    }
}

fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
}

/// The file with the line of a load, which may be changed.
fn source_of(place: &Place) -> Result<PathBuf> {
    let file = place.row.file.as_deref().unwrap_or_default();
    if !is_text(Path::new(file)) {
        return Err(Error::not_possible("only C and C++ are changed"));
    }
    below(&here()?, Path::new(file), "its source")
}

/// A file, links followed, which must not lead elsewhere.
fn below(folder: &Path, path: &Path, what: &str) -> Result<PathBuf> {
    let found = tma::files::resolved(path).map_err(|e| tma::error::unreadable(path, &e))?;
    if !found.starts_with(folder) {
        return Err(Error::not_possible(format!("{what} is not below the current folder"))
            .hint("start in a folder that has the source and the program"));
    }
    Ok(found)
}
