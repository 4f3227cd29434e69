//! Why the file of a module was not found, in words.

use super::gap::{Gap, shortened};
use super::locate::locate;
use super::search::SearchPaths;
use crate::module::Module;
use std::path::{Path, PathBuf};

/// Why the file of a module is not found in these places, and what would give it; `None` if it is found.
pub fn missing(search: &SearchPaths, module: &Module) -> Option<String> {
    locate(search, module).err()?;
    // Its own path, and what was given in place of that.
    let own = SearchPaths { programs: Vec::new(), ..search.clone() };
    let own = locate(&own, module).err().unwrap_or(Gap::NoCode);
    let here = match (&own, search.roots.is_empty()) {
        (Gap::NoFile(_), true) => "it is not here".to_owned(),
        (Gap::NoFile(_), false) => format!("it is not here, nor below {}", names(&search.roots)),
        _ => own.to_string(),
    };
    let given = match search.programs.as_slice() {
        [] => String::new(),
        [program] => format!(", and {}", another(program, module)),
        several => format!(", and none of {} is it", names(several)),
    };
    Some(format!("{here}{given}; {}", remedy(search)))
}

fn names(all: &[PathBuf]) -> String {
    let names: Vec<String> = all.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

/// Why a program does not stand for a module.
fn another(program: &Path, module: &Module) -> String {
    let name = program.display();
    let is_called_so = program.file_name().is_some_and(|own| own == module.name());
    if module.build_id.is_none() && !is_called_so {
        return format!("{name} has another name");
    }
    let only = Module { path: name.to_string(), ..module.clone() };
    match locate(&SearchPaths::default(), &only) {
        Err(Gap::Changed(recorded, found)) => {
            let (recorded, found) = (shortened(&recorded), shortened(&found));
            format!("{name} is another program: build-id {found}, {recorded} is recorded")
        }
        Err(Gap::Unreadable(reason)) => format!("{name} cannot be read: {reason}"),
        _ => format!("{name} cannot be opened"),
    }
}

/// Options that give files of modules not found in these places; options given already are no remedy.
fn remedy(search: &SearchPaths) -> &'static str {
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
        let here = "it is not here, nor below /some/root, and ";
        let expected = format!("{here}{} is another program: build-id ", own.display());
        assert!(
            found.starts_with(&expected) && found.contains("abababababab… is recorded"),
            "{found}"
        );
        // A program that stands for another module does not hide what is wrong with this one.
        let changed = Module { path: own.display().to_string(), ..module(Some(vec![0xab; 20])) };
        search.programs = vec![PathBuf::from("/bin/sh"), own.clone()];
        let found = why(&search, None);
        assert!(found.starts_with("it is not here, nor below /some/root, and none of "), "{found}");
        let search = SearchPaths::default();
        assert!(missing(&search, &changed).unwrap().starts_with("it has changed since: build-id "));
        assert_eq!(
            missing(&search, &Module { path: own.display().to_string(), ..module(None) }),
            None
        );
    }
}
