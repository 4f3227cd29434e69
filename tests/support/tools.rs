//! Compilers, binutils and other programs that may be absent.

use super::child::Limited as _;
use super::files::text;
use super::flags::undefined_reads_of;
use super::run::{Ran, program, run};
use std::fs;
use std::path::{Path, PathBuf};

/// Whether there is such a program; says so where not.
pub fn available(name: &str) -> bool {
    let there = program(name).arg("--version").run_limited().is_ok();
    if !there {
        eprintln!("skipped: no {name} here");
    }
    there
}

/// What a program prints; `None`, with a message, where it is absent.
///
/// # Panics
/// It fails.
pub fn tool(name: &str, arguments: &[&str]) -> Option<String> {
    match program(name).args(arguments).run_limited().map(Ran::from) {
        Ok(done) if done.status.success() => Some(done.stdout),
        Ok(done) => panic!("{name} {arguments:?}: {}", done.stderr),
        Err(error) => {
            eprintln!("skipped: no {name} here: {error}");
            None
        }
    }
}

/// Compiles or assembles `source` to `output` in `folder`; `None`, with a message, without a
/// compiler.
///
/// # Panics
/// It cannot be compiled, or does different things on different processors.
pub fn build(
    folder: &Path,
    compiler: &str,
    source: &str,
    arguments: &[&str],
    output: &str,
) -> Option<PathBuf> {
    let ending = match compiler {
        "rustc" => "rs",
        "g++" => "cpp",
        "as" => "s",
        _ => "c",
    };
    let (input, output) = (folder.join(format!("source.{ending}")), folder.join(output));
    fs::write(&input, source).expect("written");
    let mut all = arguments.to_vec();
    all.extend([text(&input), "-o", text(&output)]);
    tool(compiler, &all)?;
    // Of code that compilers make this is true anyway.
    if compiler != "rustc" {
        // Libraries linked statically are not ours.
        let is_static = arguments.iter().any(|option| option.starts_with("-static"));
        let reads = undefined_reads_of(&output, |name| !is_static || source.contains(name));
        assert!(reads.is_empty(), "flags are read where they are undefined: {reads:?}");
    }
    Some(output)
}

/// gcc's [`build`].
pub fn gcc(folder: &Path, source: &str, arguments: &[&str], output: &str) -> Option<PathBuf> {
    build(folder, "gcc", source, arguments, output)
}

/// A copy of `file` by cp(1): while this process wrote it, a program started by another test could
/// hold it open for writing, and it could not be run.
pub fn copy(file: &str, to: &Path) {
    run(program("cp").args([file, text(to)])).succeeded();
}
