//! The direction of the data, in the code itself: the compiler keeps it between crates, these tests
//! inside a crate, where no two files import each other. And that no code asks what a message says, fails with one, or
//! makes a text by `Debug`; and that tests compare texts whole.

mod children;
mod ci;
mod debug;
mod files;
mod flags;
mod imports;
mod messages;
mod reasons;
mod wording;

use crate::support::files::root;
use imports::Crate;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The root files of the program and of every library crate.
fn roots() -> Vec<PathBuf> {
    let mut roots = vec![root().join("ui/main.rs"), root().join("events/lib.rs")];
    roots.push(root().join("events/import/main.rs"));
    let crates = std::fs::read_dir(root().join("src")).unwrap();
    roots.extend(crates.map(|entry| entry.unwrap().path().join("lib.rs")));
    roots
}

/// The code of the program and of the libraries in `src`, without files of tests, by path.
fn texts() -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for crate_root in roots() {
        let folder = crate_root.parent().unwrap();
        let name = folder.strip_prefix(root()).unwrap().display().to_string();
        if name.starts_with("events") {
            continue;
        }
        texts.extend(files::read(&crate_root).into_values().map(|file| {
            let text = std::fs::read_to_string(folder.join(&file.path)).unwrap();
            (format!("{name}/{}", file.path), text)
        }));
    }
    texts
}

/// What each crate may depend on (docs/architecture.md, "Dependencies"). Tests may use more.
const DIRECTION: [(&str, &[&str]); 16] = [
    ("src/tma", &[]),
    ("events", &["tma"]),
    ("events/import", &["tma"]),
    ("src/estimate", &[]),
    ("src/fleet", &["tma"]),
    ("src/isa", &["tma"]),
    ("src/markers", &[]),
    ("src/pmu", &["tma"]),
    ("src/workload", &["tma"]),
    ("src/probe", &["isa", "pmu", "tma"]),
    ("src/profile", &["isa", "pmu", "tma"]),
    ("src/loads", &["isa", "tma"]),
    ("src/bench", &["isa", "pmu", "tma"]),
    ("src/branches", &["isa", "profile", "tma"]),
    (
        "src/report",
        &["bench", "branches", "estimate", "isa", "loads", "pmu", "profile", "tma", "workload"],
    ),
    (
        "src/engine",
        &[
            "bench", "branches", "estimate", "events", "fleet", "isa", "loads", "pmu", "probe",
            "profile", "report", "tma", "workload",
        ],
    ),
];

#[test]
fn crates_depend_on_one_another_in_one_direction() {
    let ours = [
        "bench", "branches", "engine", "estimate", "events", "fleet", "isa", "loads", "markers",
        "pmu", "probe", "profile", "report", "tma", "workload",
    ];
    for (folder, allowed) in DIRECTION {
        let text = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        for section in ["dependencies", "build-dependencies"] {
            let names = manifest.get(section).and_then(|d| d.as_table()).map(|d| d.keys());
            let used = names.into_iter().flatten().filter(|name| ours.contains(&name.as_str()));
            for name in used {
                assert!(allowed.contains(&name.as_str()), "{folder} depends on {name}");
            }
        }
    }
}

#[test]
fn no_two_files_of_a_crate_import_each_other() {
    let mut circles = Vec::new();
    let mut imports = 0;
    for root in roots() {
        let files = Crate::new(files::read(&root));
        imports += files.imports();
        for ring in files.circles() {
            circles.push(format!("{}:\n  {}", root.display(), ring.join("\n  ")));
        }
    }
    assert!(imports > 1000, "only {imports} imports were found");
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

#[test]
fn no_two_folders_of_a_crate_import_each_other() {
    let mut knots = Vec::new();
    for root in roots() {
        for ring in Crate::new(files::read(&root)).knots() {
            knots.push(format!("{}:\n  {}", root.display(), ring.join("\n  ")));
        }
    }
    assert!(knots.is_empty(), "{}", knots.join("\n"));
}

#[test]
fn a_circle_is_found_through_re_exports_and_macros() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a;\nmod b;\npub use a::one::One;\nfn here() { a::one::f(); }");
    write("a/mod.rs", "pub mod one;\n#[cfg(test)]\nmod tests { use crate::b; }");
    write("a/one.rs", "pub struct One;\npub fn f() { vec![crate::b::two()]; }");
    write("b.rs", "use crate::One;\npub fn two() -> One { One }");
    let circles = Crate::new(files::read(&folder.path().join("lib.rs"))).circles();
    assert_eq!(circles, [["a/one.rs imports b.rs: crate::b::two", "b.rs imports a/one.rs: One"]]);
}
