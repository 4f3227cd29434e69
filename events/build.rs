//! Lists every table as `(name, text)` pairs for embedding.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    embed(&root, &["intel", "amd", "abstract"], &out.join("tables.rs"))?;
    embed(&root, &["latency"], &out.join("latencies.rs"))
}

/// Writes the list of the TOML files in `folders`. Each folder must exist: cargo would take a
/// missing one for changed at every build.
fn embed(root: &Path, folders: &[&str], list: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    for folder in folders.iter().map(|folder| root.join(folder)) {
        println!("cargo::rerun-if-changed={}", folder.display());
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            files.extend(path.extension().is_some_and(|e| e == "toml").then_some(path));
        }
    }
    files.sort();
    let mut code = String::from("&[\n");
    for file in &files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let path = file.display().to_string();
        writeln!(code, "    ({name:?}, include_str!({path:?})),").map_err(io::Error::other)?;
    }
    code.push_str("]\n");
    fs::write(list, code)
}
