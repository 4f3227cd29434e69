//! Functions of a program that its own symbol table does not name, found as a report finds them: in a separate debug
//! file (by link or build-id), in mini debug information, in the table of Go's run time.

use isa::program::Known;
use probe::facts::functions;
use profile::files::SearchPaths;
use profile::module::{Module, ModuleKind};
use profile::symbols::Symbols;
use std::collections::HashSet;
use std::path::Path;

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
