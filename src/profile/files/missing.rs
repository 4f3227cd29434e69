//! Why the file of a module was not found, in words.

use super::build_id::hexadecimal;
use super::gap::{Gap, shortened};
use super::locate::locate;
use super::search::SearchPaths;
use crate::module::Module;
use std::path::PathBuf;

/// Why the file of a module is not found in these places, and what would give it; `None` if it is found.
pub fn missing(search: &SearchPaths, module: &Module) -> Option<String> {
    let gap = locate(search, module).err()?;
    let names = |all: &[PathBuf]| {
        let names: Vec<String> = all.iter().map(|path| path.display().to_string()).collect();
        names.join(", ")
    };
    let (roots, programs) = (names(&search.roots), names(&search.programs));
    let why = match (&gap, roots.is_empty(), programs.is_empty()) {
        (Gap::NoFile(_), false, true) => format!("it is not here, nor below {roots}"),
        (Gap::NoFile(_), true, false) => format!("it is not here, and {programs} has another name"),
        (Gap::NoFile(_), false, false) => {
            format!("it is not here, nor below {roots}, and {programs} has another name")
        }
        (Gap::NoFile(_), true, true) => "it is not here".to_owned(),
        (Gap::Changed(_, found), _, false) => {
            let recorded =
                module.build_id.as_deref().map_or_else(|| "none".to_owned(), hexadecimal);
            let (recorded, found) = (shortened(&recorded), shortened(found));
            format!("{programs} is another program: build-id {found}, {recorded} is recorded")
        }
        _ => gap.to_string(),
    };
    Some(format!("{why}; {}", remedy(search)))
}

/// What gives the files of modules that are not found in these places: what was given already is no remedy.
pub fn remedy(search: &SearchPaths) -> &'static str {
    match (search.roots.is_empty(), search.programs.is_empty()) {
        (true, true) => "--binary FILE or --symfs DIR gives it",
        (false, true) => "--binary FILE gives it",
        (_, false) => "--binary with the recorded program gives it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::ModuleKind;

    #[test]
    fn what_was_given_is_no_remedy() {
        let module = |build_id: Option<Vec<u8>>| Module {
            path: "/nowhere/prog".to_owned(),
            kind: ModuleKind::File,
            build_id,
            ..Module::default()
        };
        let why = |search: &SearchPaths, id| missing(search, &module(id)).unwrap();
        let mut search = SearchPaths::default();
        assert_eq!(why(&search, None), "it is not here; --binary FILE or --symfs DIR gives it");
        search.roots.push(PathBuf::from("/some/root"));
        assert_eq!(
            why(&search, None),
            "it is not here, nor below /some/root; --binary FILE gives it"
        );
        // This test is a program, but not the recorded one.
        let own = std::env::current_exe().unwrap();
        search.programs.push(own.clone());
        assert!(why(&search, None).contains("has another name"));
        let found = why(&search, Some(vec![0xab; 20]));
        let expected = format!("{} is another program: build-id ", own.display());
        assert!(
            found.starts_with(&expected) && found.contains("abababababab… is recorded"),
            "{found}"
        );
        assert_eq!(
            missing(&search, &Module { path: own.display().to_string(), ..module(None) }),
            None
        );
    }
}
