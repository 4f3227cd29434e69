//! Compiles the tables and texts of this folder into a form that needs no parsing at start-up: tables as postcard, the
//! data that chooses between them and the node texts as Rust constants.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};
use tma::tables::schema::MatchRule;
use tma::tables::{Table, pack, plain_name};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// An entry of `nodes.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeText {
    #[serde(default)]
    meaning: String,
    causes: Option<String>,
    next: Option<String>,
    same: Option<String>,
}

fn main() -> Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("set by cargo")?);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("set by cargo")?);
    println!("cargo::rerun-if-changed={}", root.join("build.rs").display());
    tables(&files(&root, &["intel", "amd", "abstract"])?, &out)?;
    texts(&root.join("nodes.toml"), &out)?;
    named_texts(&files(&root, &["latency"])?, &out, "latencies")?;
    named_texts(&files(&root, &["ports"])?, &out, "ports")
}

/// The TOML files of `folders`, by name. Each folder must exist: cargo would take a missing one for
/// changed at every build.
fn files(root: &Path, folders: &[&str]) -> Result<BTreeMap<String, PathBuf>> {
    let mut files = BTreeMap::new();
    for folder in folders.iter().map(|folder| root.join(folder)) {
        println!("cargo::rerun-if-changed={}", folder.display());
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "toml") {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                if let Some(other) = files.insert(name, path.clone()) {
                    return Err(format!(
                        "{} and {} have one name",
                        other.display(),
                        path.display()
                    )
                    .into());
                }
            }
        }
    }
    Ok(files)
}

/// The list of tables, and which of them has an event of a name.
fn tables(files: &BTreeMap<String, PathBuf>, out: &Path) -> Result<()> {
    assert!(files.len() <= 64, "an event name has a bit for each table");
    let mut list = String::from("&[\n");
    let (mut names, mut plain) = (BTreeMap::new(), BTreeMap::new());
    for (number, (name, path)) in files.iter().enumerate() {
        let table = Table::parse(&fs::read_to_string(path)?, &path.display().to_string())?;
        let data = out.join(format!("{name}.postcard"));
        fs::write(&data, pack(&table.encode()?)?)?;
        let rules: Vec<String> = table.matches.iter().map(rule).collect();
        writeln!(
            list,
            "    Embedded {{ name: {name:?}, vendor: {:?}, core: {}, pmu: {:?}, rules: &[{}], \
             signature: &{:?}, data: Packed(include_bytes!({:?})) }},",
            table.vendor,
            table.core.map_or("None".into(), |c| format!("Some(CoreKind::{c:?})")),
            table.pmu,
            rules.join(", "),
            table.encode_signature()?,
            data.display().to_string()
        )?;
        for event in &table.events {
            *names.entry(event.name.clone()).or_default() |= 1u64 << number;
            if let Some(name) = plain_name(&event.name) {
                *plain.entry(name).or_default() |= 1u64 << number;
            }
        }
    }
    fs::write(out.join("tables.rs"), list + "]\n")?;
    for (names, file) in [(names, "names.rs"), (plain, "plain_names.rs")] {
        let entry = |(name, of): (&String, &u64)| format!("({name:?}, {of:#x}),\n");
        let entries: String = names.iter().map(entry).collect();
        fs::write(out.join(file), format!("&[{entries}]"))?;
    }
    Ok(())
}

fn rule(rule: &MatchRule) -> String {
    let MatchRule { family, models, steppings } = rule;
    format!("Rule {{ family: {family}, models: &{models:?}, steppings: &{steppings:?} }}")
}

/// The node texts, sorted by key (`node.ID`, `info.ID`).
fn texts(file: &Path, out: &Path) -> Result<()> {
    println!("cargo::rerun-if-changed={}", file.display());
    let texts: BTreeMap<String, BTreeMap<String, NodeText>> =
        toml::from_str(&fs::read_to_string(file)?)?;
    let mut entries = BTreeMap::new();
    for (group, texts) in texts {
        entries.extend(texts.into_iter().map(|(id, text)| (format!("{group}.{id}"), text)));
    }
    let entry = |(key, text): (&String, &NodeText)| {
        let NodeText { meaning, causes, next, same } = text;
        format!(
            "({key:?}, Text {{ meaning: {meaning:?}, causes: {causes:?}, next: {next:?}, \
             same: {same:?} }}),\n"
        )
    };
    let entries: String = entries.iter().map(entry).collect();
    Ok(fs::write(out.join("texts.rs"), format!("&[{entries}]"))?)
}

/// Files of latencies or ports: their names and texts.
fn named_texts(files: &BTreeMap<String, PathBuf>, out: &Path, what: &str) -> Result<()> {
    let mut entries = String::new();
    for (name, path) in files {
        let data = out.join(format!("{name}.{what}"));
        fs::write(&data, pack(&fs::read(path)?)?)?;
        writeln!(entries, "({name:?}, Packed(include_bytes!({:?}))),", data.display().to_string())?;
    }
    Ok(fs::write(out.join(format!("{what}.rs")), format!("&[{entries}]"))?)
}
