//! Chooses the functions to count: those of the command's own program or of given files, all, by name, or by a
//! sampled run. Checks that addresses given by hand are in them.

use super::ask::{CountAsk, executable, program};
use crate::function_name;
use crate::hot::hottest::{Hot, Hottest};
use isa::program::{nameless, nameless_start};
use probe::count::Wanted;
use probe::facts::{self, Function, Named, NoCode, functions};
use profile::hot::Unavailable;
use profile::module::{Module, ModuleKind};
use profile::symbols::Symbols;
use report::documents::count::{HotFunctions, HotRow};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use tma::{Address, Error, Result};

/// A function to count, with its name.
pub(crate) struct Chosen {
    pub name: String,
    pub aliases: Vec<String>,
    pub wanted: Wanted,
}

/// The functions that are asked for.
///
/// # Errors
/// There is no such file or function; the program cannot be executed.
pub(super) fn chosen(ask: &CountAsk) -> Result<Vec<Chosen>> {
    let modules = match ask.modules.as_slice() {
        [] => match ask.process {
            Some((pid, _)) => vec![executable(pid)?],
            None => vec![program(&ask.command)?],
        },
        given => given.to_vec(),
    };
    let mut all = Vec::new();
    for path in modules {
        all.extend(of_file(&path)?);
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
            let around = nameless_start(name)
                .and_then(|at| all.iter().find(|one| one.wanted.range.contains(&at)))
                .map(|one| format!("the function with that address is `{}`", one.name));
            let other = around
                .or_else(|| number(name).map(str::to_owned))
                .or_else(|| function_name::did_you_mean(names, name))
                .unwrap_or_else(|| "--module FILE names the file that has it".to_owned());
            return Err(error.hint(other));
        }
    }
    all.retain(|one| ask.functions.iter().any(|name| is(one, name)));
    Ok(all)
}

/// Advice for a number that is the name of no function: a report takes how many to show.
fn number(name: &str) -> Option<&'static str> {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(
        "an address begins with 0x; --hot counts the functions that hold most samples, --share how many",
    )
}

/// The address that stands for the function around it.
fn address(name: &str) -> Option<u64> {
    name.parse().ok().map(|Address(start)| start)
}

/// The functions of a file.
fn of_file(path: &Path) -> Result<Vec<Chosen>> {
    let failed = |why: NoCode| {
        let error = Error::failed(format!("the functions of {} are not known", path.display()));
        let hint = match &why {
            NoCode::Script(_) => {
                "--hot finds the functions of what it runs; or name the ELF file that has them: \
                 --module FILE"
            }
            why if why.is_denied() => {
                "run as a user who may read the file: its code has to be analysed"
            }
            _ => "give an ELF file of x86-64 that has the code: --module FILE",
        };
        error.because(why).hint(hint)
    };
    let path = tma::files::resolved(path).map_err(|e| failed(e.into()))?;
    let (found, mut names) = all(&path).map_err(failed)?;
    Ok(found.into_iter().map(|named| names.chosen(named)).collect())
}

/// All functions of a file, in order of address, with their names.
///
/// # Errors
/// The reason why it has none.
pub(super) fn all(path: &Path) -> std::result::Result<(Vec<Named>, Names), NoCode> {
    let found = functions(path);
    let mut names = Names::new(path);
    let others = names.beyond(found.as_deref().unwrap_or_default());
    if others.is_empty() {
        return found.map(|found| (found, names));
    }
    let mut all = found.unwrap_or_default();
    all.extend(others);
    all.sort_by_key(|one| one.range.start);
    Ok((all, names))
}

/// The names of the functions of a file.
pub(super) struct Names {
    path: PathBuf,
    module: Module,
    symbols: Symbols,
}

impl Names {
    /// The functions of the file at `path`, which is read when the first is asked for.
    pub fn new(path: &Path) -> Self {
        let module = Module {
            path: path.display().to_string(),
            kind: ModuleKind::File,
            ..Module::default()
        };
        Self { path: path.to_owned(), module, symbols: Symbols::default() }
    }

    /// The functions outside of those `found` that a debug file or the table of Go's run time names; none where all are named.
    fn beyond(&mut self, found: &[Named]) -> Vec<Named> {
        if !found.is_empty() && found.iter().all(|one| one.name.is_some()) {
            return Vec::new();
        }
        let is_new = |start: u64| {
            let before = found.partition_point(|one| one.range.start <= start);
            !found[..before].last().is_some_and(|one| one.range.contains(&start))
        };
        let mut others: Vec<Named> = Vec::new();
        for (name, range) in self.symbols.named(&self.module) {
            let overlaps = others.last().is_some_and(|last| range.start < last.range.end);
            let is_function = !range.is_empty() && !name.ends_with("@plt");
            if is_function && !overlaps && is_new(range.start) {
                others.push(Named { name: Some(name.to_owned()), aliases: Vec::new(), range });
            }
        }
        others
    }

    /// Its name as a report has it: the symbol, also that of a separate debug file, else file and address.
    pub fn of(&mut self, named: &Named) -> String {
        let start = named.range.start;
        named.name.clone().unwrap_or_else(|| {
            let found = self.symbols.function_at(&self.module, start).filter(|f| f.start == start);
            let symbol = found.and_then(|found| found.linkage.clone());
            symbol.unwrap_or_else(|| nameless(&self.module.path, start))
        })
    }

    fn chosen(&mut self, named: Named) -> Chosen {
        let name = self.of(&named);
        let wanted = Wanted { path: self.path.clone(), range: named.range };
        Chosen { name, aliases: named.aliases, wanted }
    }
}

/// Whether each of these addresses is that of an instruction of a chosen function.
///
/// # Errors
/// One is not: what is near it.
pub(super) fn check(addresses: &[u64], chosen: &[Chosen]) -> Result<()> {
    addresses.iter().try_for_each(|at| {
        let around: Vec<&Chosen> =
            chosen.iter().filter(|one| one.wanted.range.contains(at)).collect();
        match around.is_empty() {
            true => Err(outside(*at, chosen)),
            // The file of one of several may have an instruction there.
            false => around
                .iter()
                .map(|one| inside(*at, one))
                .reduce(|found, other| found.or(other))
                .unwrap_or(Ok(())),
        }
    })
}

/// The error for an address in none of the functions.
fn outside(at: u64, chosen: &[Chosen]) -> Error {
    let error = Error::usage(format!("--values: no counted function has the address {at:#x}"));
    let mut files: Vec<&Path> = chosen.iter().map(|one| one.wanted.path.as_path()).collect();
    files.dedup();
    let other = files
        .into_iter()
        .find_map(|path| functions(path).ok()?.into_iter().find(|named| named.range.contains(&at)));
    if let Some(other) = other {
        let name = other.name.unwrap_or_else(|| format!("{:#x}", other.range.start));
        let why = format!("its function {name} is not counted");
        return error.because(why).hint(format!("count it, too: --functions {name}"));
    }
    let distance = |one: &&Chosen| {
        let range = &one.wanted.range;
        range.start.abs_diff(at).min(range.end.abs_diff(at))
    };
    let hint = "give an address of the file (p_vaddr), as `tdtool count` and objdump print them";
    match chosen.iter().min_by_key(distance) {
        None => error.hint(hint),
        Some(near) => {
            let range = &near.wanted.range;
            error
                .because(format!(
                    "the nearest is {}, {:#x}..{:#x}",
                    near.name, range.start, range.end
                ))
                .hint(hint)
        }
    }
}

/// Whether an instruction of the function begins at the address. What cannot be read is reported with its
/// counts.
fn inside(at: u64, of: &Chosen) -> Result<()> {
    let range = of.wanted.range.clone();
    let function = facts::Module::read(&of.wanted.path)
        .and_then(|module| {
            let entered = module.entered(std::slice::from_ref(&range));
            Function::read(&module, range, &entered)
        })
        .ok();
    let Some(function) = function else { return Ok(()) };
    let mut all = function.blocks.iter().flat_map(|block| &block.instructions);
    if all.any(|instruction| instruction.ip() == at) {
        return Ok(());
    }
    let near =
        function.blocks.iter().min_by_key(|block| match (block.start..block.end).contains(&at) {
            true => 0,
            false => block.start.abs_diff(at),
        });
    let error = Error::usage(format!("--values: no instruction of {} begins at {at:#x}", of.name));
    Err(match near {
        Some(block) => error.hint(format!("the nearest block begins at {:#x}", block.start)),
        None => error,
    })
}

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
                let is_it =
                    |known: &Wanted| known.range == wanted.range && known.path == wanted.path;
                match counted.iter_mut().find(|known| is_it(&known.wanted)) {
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
    let known = files.entry(of.path.clone()).or_insert_with(|| all(&of.path));
    let (all, names) = known.as_mut().map_err(|why| NotCounted::NoCode(why.clone()))?;
    let found = all.iter().find(|one| one.range.contains(&of.range.start));
    let found = found.ok_or(NotCounted::Unknown)?;
    let name = names.of(found);
    Ok((name, Wanted { path: of.path.clone(), range: found.range.clone() }))
}
