//! The functions to count: those of the command's own program or of given files, all or by name.

use super::ask::CountAsk;
use super::program::{executable, program};
use crate::function_name;
use isa::program::{nameless, nameless_start};
use probe::count::Wanted;
use probe::facts::{Named, NoCode, functions};
use profile::module::{Module, ModuleKind};
use profile::symbols::Symbols;
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
