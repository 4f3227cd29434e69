//! The functions to count, by a sampled run of the command.

use crate::documents::count::{HotFunctions, HotRow};
use crate::hot::hottest::{Hot, Hottest};
use probe::count::Wanted;
use probe::facts::functions;
use std::collections::BTreeMap;
use std::path::Path;
use tma::{Error, Result};

/// A function that can be counted.
pub(crate) struct Counted {
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
pub(crate) fn hot(found: &Hottest) -> Result<(Vec<Counted>, HotFunctions)> {
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
            Err(why) => (of.name.clone(), Some(why)),
        };
        let module = of.path.display().to_string();
        HotRow { module, function, share: of.share, reason }
    };
    let functions: Vec<HotRow> = found.functions.iter().map(&mut row).collect();
    if counted.is_empty() {
        let why = functions.first().and_then(|f| f.reason.clone());
        return Err(Error::failed("none of the hot functions can be counted")
            .because(why.unwrap_or_else(|| "the run has no samples".to_owned()))
            .hint("give a program that runs longer in functions of its own"));
    }
    let Hottest { asked, event, samples, period, .. } = found.clone();
    Ok((counted, HotFunctions { asked, event, samples, period, functions }))
}

/// A function by its name in its file.
fn named(
    of: &Hot,
    files: &mut BTreeMap<std::path::PathBuf, std::result::Result<Vec<probe::facts::Named>, String>>,
) -> std::result::Result<(String, Wanted), String> {
    if let Some(why) = &of.gap {
        return Err(why.clone());
    }
    if !of.path.is_absolute() {
        return Err("its code is in the kernel or in anonymous memory".to_owned());
    }
    let known = files.entry(of.path.clone()).or_insert_with(|| functions(Path::new(&of.path)));
    let all = known.as_ref().map_err(Clone::clone)?;
    let found = all.iter().find(|one| one.range.contains(&of.range.start));
    let found = found.ok_or("it is no function of its file")?;
    let name = found.name.clone().unwrap_or_else(|| format!("{:#x}", found.range.start));
    Ok((name, Wanted { path: of.path.clone(), range: found.range.clone() }))
}
