//! Finds functions by the names that people write (as in the symbol table, or demangled, with parameters or
//! without), and lists the functions of a program to choose from (`tdtool block FILE --list`).
//!
//! Functions that the program's own symbol table does not name are found as a report finds them: in a separate debug
//! file (by link or build-id), in mini debug information, in the table of Go's run time.

use isa::program::{Known, nameless};
use probe::facts::{Named, functions};
use profile::files::SearchPaths;
use profile::module::{Module, ModuleKind};
use profile::symbols::Symbols;
use profile::symbols::demangle::{demangle, demangle_short};
use report::documents::block::{FunctionLine, FunctionList};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use tma::error::nearest;
use tma::{Address, Error, Result};

/// Most candidates of an error message.
const MOST: usize = 5;

/// The symbol of the program at `path`, or of a function `known` otherwise, that `given` names; else what is called
/// nearly like it, as words for an error, if anything is.
///
/// # Errors
/// Several functions have this name, with other parameters.
pub fn in_file(
    path: &Path,
    known: &[Known],
    given: &str,
) -> Result<std::result::Result<String, Option<String>>> {
    let all = functions(path).unwrap_or_default();
    let own = all.iter().filter_map(|one| one.name.as_deref());
    let symbols = own.chain(known.iter().map(|one| one.name.as_str()));
    Ok(match symbol(symbols.clone(), given)? {
        Some(found) => Ok(found.to_owned()),
        None => Err(did_you_mean(symbols, given)),
    })
}

/// The name of a function of `file` as it is shown: demangled; with the file where it is an address only.
pub fn shown(file: &str, name: &str) -> String {
    name.parse().map_or_else(|_| demangle(name), |Address(start)| nameless(file, start))
}

/// Whether the symbol `linkage` is what `given` names.
pub fn is(linkage: &str, given: &str) -> bool {
    linkage == given || demangle(linkage) == given || demangle_short(linkage) == given
}

/// The symbol among `linkages` that `given` names; `None` if there is none.
///
/// # Errors
/// Several functions have this name, with other parameters: which.
pub fn symbol<'a>(
    linkages: impl Iterator<Item = &'a str> + Clone,
    given: &str,
) -> Result<Option<&'a str>> {
    if let Some(exact) = linkages.clone().find(|linkage| *linkage == given) {
        return Ok(Some(exact));
    }
    let mut found: Vec<&str> = linkages.filter(|linkage| is(linkage, given)).collect();
    found.sort_unstable();
    found.dedup();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => {
            let mut names: Vec<String> = several.iter().map(|linkage| demangle(linkage)).collect();
            names.dedup();
            if names.len() < several.len() {
                names = several.iter().map(|linkage| (*linkage).to_owned()).collect();
            }
            names.truncate(MOST);
            Err(Error::usage(format!("{} functions are called `{given}`", several.len()))
                .hint(format!("choose one: {}", names.join(", "))))
        }
    }
}

/// The symbols with names near `given`, the likeliest first, as words for an error: "did you mean …?"
pub fn did_you_mean<'a>(linkages: impl Iterator<Item = &'a str>, given: &str) -> Option<String> {
    let mut short: Vec<String> = linkages.map(demangle_short).collect();
    short.sort();
    short.dedup();
    let lower = given.to_lowercase();
    let last = |name: &str| name.rsplit("::").next().unwrap_or(name).to_lowercase();
    let rules: [&dyn Fn(&str) -> bool; 5] = [
        &|name| name.to_lowercase() == lower,
        &|name| is_swapped(given, name),
        &|name| name.to_lowercase().ends_with(&format!("::{lower}")),
        &|name| last(name) == last(given),
        &|name| lower.len() > 2 && name.to_lowercase().contains(&lower),
    ];
    let mut found: Vec<&str> = Vec::new();
    let mut add = |name| {
        if found.len() < MOST && !found.contains(&name) {
            found.push(name);
        }
    };
    for rule in &rules[..4] {
        short.iter().filter(|name| rule(name)).for_each(|name| add(name));
    }
    nearest(given, short.iter().map(String::as_str)).into_iter().for_each(&mut add);
    // In a namespace: the name without it.
    let tails = || short.iter().map(|name| (last(name), name));
    let near = tails().map(|(tail, _)| tail).collect::<Vec<_>>();
    if let Some(near) = nearest(&last(given), near.iter().map(String::as_str)) {
        tails().filter(|(tail, _)| tail == near).for_each(|(_, name)| add(name));
    }
    short.iter().filter(|name| rules[4](name)).for_each(|name| add(name));
    match found.as_slice() {
        [] => None,
        [one] => Some(format!("did you mean `{one}`?")),
        several => Some(format!("did you mean one of these? {}", several.join(", "))),
    }
}

/// Whether two names have the same letters, two of which changed places: a slip that is two edits even in a
/// short name.
fn is_swapped(one: &str, other: &str) -> bool {
    let sorted = |name: &str| {
        let mut letters: Vec<char> = name.chars().collect();
        letters.sort_unstable();
        letters
    };
    let differ = one.chars().zip(other.chars()).filter(|(a, b)| a != b).count();
    differ == 2 && sorted(one) == sorted(other)
}

/// Most functions that are listed.
const LISTED: usize = 50;

/// The largest functions of the program or library at `path`, named by `known` where it does not name them.
///
/// # Errors
/// It is no ELF file, or has neither symbols nor an unwind table.
pub fn list(path: &Path, known: &[Known]) -> Result<FunctionList> {
    let of_known = |one: &Known| Named {
        name: Some(one.name.clone()),
        aliases: Vec::new(),
        range: one.range.clone(),
    };
    let mut all = match functions(path) {
        Ok(all) => all,
        Err(_) if !known.is_empty() => known.iter().map(of_known).collect(),
        Err(why) => {
            let what = format!("the functions of {} are not known", path.display());
            return Err(Error::failed(what)
                .because(why)
                .hint("give a compiled program or library"));
        }
    };
    let by_start: HashMap<u64, &Known> = known.iter().map(|one| (one.range.start, one)).collect();
    for one in all.iter_mut().filter(|one| one.name.is_none()) {
        one.name = by_start.get(&one.range.start).map(|known| known.name.clone());
    }
    all.sort_by_key(|one| (Reverse(one.range.end - one.range.start), one.range.start));
    let line = |one: &Named| FunctionLine {
        name: one.name.as_deref().map(demangle),
        symbol: one.name.clone(),
        start: one.range.start.into(),
        bytes: one.range.end - one.range.start,
    };
    Ok(FunctionList {
        schema: "tdtool.functions/1",
        file: path.display().to_string(),
        count: all.len(),
        functions: all.iter().take(LISTED).map(line).collect(),
    })
}

/// The functions that only another file names for the program at `path`; none if it names all of its own.
pub fn known(path: &Path, search: &SearchPaths) -> Vec<Known> {
    let own = functions(path);
    if own.as_ref().is_ok_and(|all| all.iter().all(|one| one.name.is_some())) {
        return Vec::new();
    }
    let named: HashSet<u64> = own
        .unwrap_or_default()
        .iter()
        .filter(|one| one.name.is_some())
        .map(|one| one.range.start)
        .collect();
    let module =
        Module { path: path.display().to_string(), kind: ModuleKind::File, ..Module::default() };
    let mut symbols = Symbols::new(search.clone());
    let all = symbols.named(&module);
    let others =
        all.filter(|(name, range)| !name.ends_with("@plt") && !named.contains(&range.start));
    others.map(|(name, range)| Known { name: name.to_owned(), range }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mangled by g++ 12; demangled as c++filt does.
    const SYMBOLS: [&str; 4] =
        ["main", "_ZN5space3fooEi", "_ZN5space3fooEd", "_ZN5space5Class6methodEi"];

    #[test]
    fn names_are_found_as_written_or_demangled() {
        let of = |given| symbol(SYMBOLS.into_iter(), given);
        assert_eq!(of("main").unwrap(), Some("main"));
        assert_eq!(of("space::Class::method").unwrap(), Some(SYMBOLS[3]));
        assert_eq!(of("space::foo(double)").unwrap(), Some(SYMBOLS[2]));
        assert_eq!(of("method").unwrap(), None);
        let several = of("space::foo").unwrap_err();
        assert!(several.remedy().unwrap().contains("space::foo(int)"), "{several:?}");
    }

    #[test]
    fn nearly_right_names_get_candidates() {
        let of = |given| did_you_mean(SYMBOLS.into_iter(), given).unwrap_or_default();
        assert_eq!(of("mian"), "did you mean `main`?");
        assert_eq!(of("method"), "did you mean `space::Class::method`?");
        assert_eq!(of("Space::Foo"), "did you mean `space::foo`?");
        assert_eq!(of("Klass::metod"), "did you mean `space::Class::method`?");
        assert_eq!(of("qqqqqqqq"), "");
    }
}
