//! The functions to count, by a sampled run of the command.

use super::choice::{self, Names};
use crate::hot::hottest::{Hot, Hottest};
use probe::count::Wanted;
use probe::facts::{Named, NoCode};
use profile::hot::Unavailable;
use report::documents::count::{HotFunctions, HotRow};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use tma::{Error, Result};

/// A function that can be counted.
pub(super) struct Counted {
    /// Its name in its file.
    pub name: String,
    /// Where it is.
    pub wanted: Wanted,
    /// The samples of its blocks.
    pub samples: Vec<(u64, u64)>,
}

/// The functions that can be counted, and what the document says of all.
///
/// # Errors
/// None of them can be counted.
pub(super) fn hot(found: &Hottest) -> Result<(Vec<Counted>, HotFunctions)> {
    let mut files = BTreeMap::new();
    let mut counted: Vec<Counted> = Vec::new();
    let mut row = |of: &Hot| {
        let (function, reason) = match named(of, &mut files) {
            Ok((name, wanted)) => {
                match counted.iter_mut().find(|known| known.wanted == wanted) {
                    Some(known) => known.samples.extend(&of.blocks),
                    None => {
                        let (name, samples) = (name.clone(), of.blocks.clone());
                        counted.push(Counted { name, wanted, samples });
                    }
                }
                (name, None)
            }
            Err(why) => (of.name.clone(), Some(why.to_string())),
        };
        let module = of.path.display().to_string();
        HotRow { module, function, share: of.share, reason }
    };
    let functions: Vec<HotRow> = found.functions.iter().map(&mut row).collect();
    if counted.is_empty() {
        let why = |row: &HotRow| {
            let why = row.reason.as_deref().unwrap_or_default();
            format!(
                "{:.0} % of {} samples are in {}: {why}",
                100.0 * row.share,
                found.samples,
                row.function
            )
        };
        let why = functions.first().map_or_else(|| "there are no samples".to_owned(), why);
        return Err(Error::failed("none of the hot functions can be counted")
            .because(why)
            .hint("let it run longer in code of its own, or name functions with --functions"));
    }
    let Hottest { asked, event, samples, period, .. } = found.clone();
    Ok((counted, HotFunctions { asked, event, samples, period, functions }))
}

/// The functions of the searched files.
type Files = BTreeMap<PathBuf, std::result::Result<(Vec<Named>, Names), NoCode>>;

/// Why a function is not counted.
enum NotCounted {
    /// Its code is missing, in the words of the samples.
    Gap(String),
    /// It is in no file.
    NoFile,
    /// Its file has no code that can be counted.
    NoCode(NoCode),
    /// Its file has no function at its address.
    Unknown,
}

impl fmt::Display for NotCounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gap(why) => why,
            Self::NoFile => return Unavailable::NoFile.fmt(f),
            Self::NoCode(why) => return why.fmt(f),
            Self::Unknown => "no function of its file is known there",
        })
    }
}

/// A function by its name in its file.
fn named(of: &Hot, files: &mut Files) -> std::result::Result<(String, Wanted), NotCounted> {
    if let Some(why) = &of.gap {
        return Err(NotCounted::Gap(why.clone()));
    }
    if !of.path.is_absolute() {
        return Err(NotCounted::NoFile);
    }
    let known = files.entry(of.path.clone()).or_insert_with(|| choice::all(&of.path));
    let (all, names) = known.as_mut().map_err(|why| NotCounted::NoCode(why.clone()))?;
    let found = all.iter().find(|one| one.range.contains(&of.range.start));
    let found = found.ok_or(NotCounted::Unknown)?;
    let name = names.of(found);
    Ok((name, Wanted { path: of.path.clone(), range: found.range.clone() }))
}
