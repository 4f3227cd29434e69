//! Stripped Go programs: a table as Go's linker writes it (runtime/symtab.go of Go 1.20), for functions of C, since no Go
//! compiler is needed to write one.

use super::binutils::{at, module};
use crate::support::files::{Folder, text};
use crate::support::run::tdtool;
use crate::support::tools::{gcc, tool};
use object::{Object as _, ObjectSymbol as _};
use profile::symbols::Symbols;
use std::fs;

const SOURCE: &str = "
    __attribute__((noinline)) long first(long n) { long s = 0; while (n--) s = s * 3 + n; return s; }
    __attribute__((noinline)) long second(long n) { long s = 1; while (n--) s = s * 5 + n; return s; }
    int main(int c, char **v) { return (int)(first(c) + second(c)); }";

/// A table of these functions: starts, in order, and names; `end` is that of the last.
fn table(functions: &[(u64, &str)], end: u64) -> Vec<u8> {
    let names: Vec<u8> =
        functions.iter().flat_map(|(_, name)| [name.as_bytes(), b"\0"].concat()).collect();
    let (text, header) = (functions[0].0, 8 + 8 * 8);
    let list = header + names.len();
    let words = [functions.len() as u64, 0, text, header as u64, 0, 0, 0, list as u64];
    let mut out = 0xffff_fff1u32.to_le_bytes().to_vec();
    out.extend([0, 0, 1, 8]);
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    out.extend(&names);
    let details = 8 * functions.len() + 4;
    for (number, (start, _)) in functions.iter().enumerate() {
        out.extend(((start - text) as u32).to_le_bytes());
        out.extend(((details + 8 * number) as u32).to_le_bytes());
    }
    out.extend(((end - text) as u32).to_le_bytes());
    let mut name = 0u32;
    for (start, text_of) in functions {
        out.extend(((start - text) as u32).to_le_bytes());
        out.extend(name.to_le_bytes());
        name += text_of.len() as u32 + 1;
    }
    out
}

#[test]
fn a_stripped_go_program_has_the_names_of_its_run_time() {
    let folder = Folder::new();
    let args = ["-O1", "-no-pie", "-fno-asynchronous-unwind-tables"];
    let Some(program) = gcc(folder.path(), SOURCE, &args, "prog") else { return };
    let data = fs::read(&program).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let symbol = |name: &str| file.symbol_by_name(name).unwrap();
    let (first, second) = (symbol("first"), symbol("second"));
    let functions = [(first.address(), "main.first"), (second.address(), "main.(*T).second")];
    let end = second.address() + second.size();
    fs::write(folder.path().join("table"), table(&functions, end)).unwrap();
    let section = format!(".gopclntab={}", folder.path().join("table").display());
    let add = ["--strip-all", "--add-section", &section, text(&program)];
    let Some(_) = tool("objcopy", &add) else { return };
    let found = Symbols::default().function(&module(&program), at(second.address() + 1)).unwrap();
    assert_eq!((&*found.name, found.start, found.end), ("main.(*T).second", second.address(), end));
    let listed = tdtool(["block", "--list", &format!("{}:main.first", text(&program))]).succeeded();
    assert!(listed.stdout.contains("main.first"), "{}", listed.stdout);
    // Four arguments, the program's name among them.
    let of = ["count", "--functions", "main.first", "--format", "json", "--"];
    let ran = tdtool(of.iter().copied().chain([text(&program), "1", "2", "3"]));
    need!(ran.code() != Some(3), ran.stderr);
    let document = ran.json();
    let entries = |count: u64| {
        let blocks = document["blocks"].as_array().expect("blocks");
        blocks.iter().any(|b| b["function"] == "main.first" && b["count"] == count)
    };
    assert!(entries(1) && entries(4), "{document:#}");
}
