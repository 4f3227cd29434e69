//! Which file of a crate imports which: from every path in the code to the file that defines what it
//! names, through re-exports.

use super::files::{File, ModulePath};
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use std::collections::BTreeMap;

/// The files of one crate.
pub struct Crate(BTreeMap<ModulePath, File>);

impl Crate {
    /// A crate of these files.
    pub fn new(files: BTreeMap<ModulePath, File>) -> Self {
        Self(files)
    }

    /// Every ring of files that import one another, each with the imports inside it.
    pub fn circles(&self) -> Vec<Vec<String>> {
        let mut graph = DiGraphMap::<&str, &[String]>::new();
        for (module, file) in &self.0 {
            for (path, defining) in self.imports_of(module, file) {
                graph.add_edge(&file.path, &self.0[&defining].path, path);
            }
        }
        let rings = tarjan_scc(&graph).into_iter().filter(|ring| ring.len() > 1);
        rings
            .map(|ring| {
                let inside =
                    graph.all_edges().filter(|(a, b, _)| ring.contains(a) && ring.contains(b));
                inside.map(|(a, b, path)| format!("{a} imports {b}: {}", path.join("::"))).collect()
            })
            .collect()
    }

    /// Every ring of folders (with the file of the same name) whose files import one another's, as `a/: imports`.
    pub fn knots(&self) -> Vec<Vec<String>> {
        let mut inside = BTreeMap::<(&str, String), Vec<String>>::new();
        for (module, file) in self.0.iter().filter(|(module, _)| !module.is_empty()) {
            for (path, defining) in self.imports_of(module, file) {
                let Some(to) = defining.into_iter().next().filter(|to| *to != module[0]) else {
                    continue;
                };
                let text = format!("{} imports {}", file.path, path.join("::"));
                inside.entry((&module[0], to)).or_default().push(text);
            }
        }
        let graph = DiGraphMap::<&str, ()>::from_edges(inside.keys().map(|(a, b)| (*a, &**b)));
        let rings = tarjan_scc(&graph).into_iter().filter(|ring| ring.len() > 1);
        rings
            .map(|ring| {
                inside
                    .iter()
                    .filter(|((a, b), _)| ring.contains(a) && ring.contains(&&**b))
                    .map(|((a, b), all)| format!("{a} > {b} ({}): {}", all.len(), all.join("; ")))
                    .collect()
            })
            .collect()
    }

    /// How many imports there are between the files.
    pub fn imports(&self) -> usize {
        self.0.iter().map(|(module, file)| self.imports_of(module, file).len()).sum()
    }

    /// The other files a file's code names, each with one path to it.
    fn imports_of<'a>(&self, module: &[String], file: &'a File) -> Vec<(&'a [String], ModulePath)> {
        let named = file.uses.values().filter(|u| !u.public).map(|u| &u.path);
        let mut imports = BTreeMap::new();
        for path in named.chain(&file.globs).chain(&file.mentions) {
            let Some(defining) = self.absolute(module, path).and_then(|p| self.defining(&p, 0))
            else {
                continue;
            };
            // A module brought in as a whole is imported where its items are mentioned.
            if defining.1 && defining.0 != module {
                imports.insert(defining.0, &path[..]);
            }
        }
        imports.into_iter().map(|(module, path)| (path, module)).collect()
    }

    /// A path from the crate's root; none if it leaves the crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let file = self.0.get(module)?;
        let first = path.first()?;
        match first.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([module, &path[1..]].concat()),
            "super" => {
                let up = path.iter().take_while(|p| *p == "super").count();
                Some([&module[..module.len().checked_sub(up)?], &path[up..]].concat())
            }
            name if file.children.contains(name) => Some([module, path].concat()),
            name => {
                let used = file.uses.get(name).filter(|u| u.path.first() != Some(first))?;
                Some([&self.absolute(module, &used.path)?[..], &path[1..]].concat())
            }
        }
    }

    /// The file that defines what a path names, and whether it names an item and not a module.
    fn defining(&self, path: &[String], depth: usize) -> Option<(ModulePath, bool)> {
        assert!(depth < 20, "re-exports in a ring: {path:?}");
        let mut module = Vec::new();
        for (at, name) in path.iter().enumerate() {
            let file = &self.0[&module];
            if file.children.contains(name) {
                module.push(name.clone());
                continue;
            }
            if file.defined.contains(name) {
                return Some((module, true));
            }
            if file.uses.contains_key(name) {
                let target = self.absolute(&module, std::slice::from_ref(name))?;
                return self.defining(&[&target[..], &path[at + 1..]].concat(), depth + 1);
            }
            let in_globs = file.globs.iter().find_map(|glob| {
                let target = [&self.absolute(&module, glob)?[..], &path[at..]].concat();
                self.defining(&target, depth + 1).filter(|found| found.1)
            });
            return in_globs;
        }
        Some((module, false))
    }
}
