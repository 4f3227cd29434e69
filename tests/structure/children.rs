//! No test waits for ever: its children are started with a limit (`support::child`), and are killed with all they
//! started when it is over or the test run ends.

use crate::support::child::{LIMIT, Limited as _};
use crate::support::files::{Folder, root};
use crate::support::wait::until;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files that start programs by `std` or have a method of such a name, each with what ends them.
const OTHERS: [(&str, &str); 7] = [
    ("tests/support/child.rs", "sets the limits"),
    ("src/isa/code/assemble.rs", "the assembler of `--asm`, which reads a few lines"),
    ("src/engine/pgo/profgen.rs", "llvm-profgen, which is in the group of the test's tdtool"),
    ("src/engine/pgo/bolt.rs", "llvm-bolt, likewise"),
    ("src/probe/regions/mod.rs", "the dynamic linker, which lists libraries"),
    ("src/probe/process/tracee.rs", "a test's cat, which has an alarm"),
    ("src/profile/files/search.rs", "the status of an HTTP response"),
];

/// All Rust files below a folder, without build outputs.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Calls of `Command`'s methods that wait without a limit, or let the caller do so: `.spawn()` and the like. Those
/// of other types have arguments.
fn unlimited(tokens: TokenStream) -> usize {
    let all: Vec<TokenTree> = tokens.into_iter().collect();
    let is_call = |three: &[TokenTree]| match three {
        [TokenTree::Punct(dot), TokenTree::Ident(name), TokenTree::Group(arguments)] => {
            dot.as_char() == '.'
                && ["output", "status", "spawn"].iter().any(|method| name == method)
                && arguments.delimiter() == Delimiter::Parenthesis
                && arguments.stream().is_empty()
        }
        _ => false,
    };
    let here = all.windows(3).filter(|three| is_call(three)).count();
    let inside = all.into_iter().map(|token| match token {
        TokenTree::Group(group) => unlimited(group.stream()),
        _ => 0,
    });
    here + inside.sum::<usize>()
}

#[test]
fn children_of_tests_are_started_with_a_limit() {
    let mut files = Vec::new();
    ["tests", "src", "ui", "events"].iter().for_each(|f| sources(&root().join(f), &mut files));
    assert!(files.len() > 500, "only {} files", files.len());
    let mut others: Vec<&str> = OTHERS.iter().map(|(file, _)| *file).collect();
    for path in files {
        let tokens: TokenStream = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if unlimited(tokens) > 0 {
            let known = others.iter().position(|other| **other == name);
            let known = known.unwrap_or_else(|| panic!("{name}: use support::child::Limited"));
            others.remove(known);
        }
    }
    assert!(others.is_empty(), "no exception is needed for {others:?}");
}

#[test]
fn calls_are_found_in_macros_and_closures() {
    let found = |text: &str| unlimited(text.parse().unwrap());
    assert_eq!(found("fn f() { assert!(c.status().is_ok()); || c.arg(1).spawn(); }"), 2);
    assert_eq!(found("fn f() { thread.spawn(work); let output = run(c).output; status(); }"), 0);
}

/// Writes the number of a process that it starts, which works for a long time as it does itself.
const HANGS: &str = "sleep 1000 & echo $!; echo $! > \"$NUMBER\"; wait";

/// Is run by the tests below, which end it; has nothing to do otherwise.
#[test]
fn hangs() {
    let Ok(number) = std::env::var("NUMBER") else { return };
    let mut shell = Command::new("sh");
    shell.args(["-c", HANGS]).env("NUMBER", &number).stdin(Stdio::null());
    let running = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).start_limited().unwrap();
    // From here on it is known to what kills it.
    std::fs::write(number + ".started", "").unwrap();
    running.wait_with_output().unwrap();
}

/// This test binary with only [`hangs`] in it, whose child writes its number to a file.
fn hanging(file: &str, limit: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "structure::children::hangs"]);
    command.env("NUMBER", file).env(LIMIT, limit);
    command
}

/// Gone, or a zombie that its new parent has not waited for.
fn has_ended(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.trim()));
    stat.map_or(true, |stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
}

#[test]
fn a_child_that_hangs_fails_its_test_with_what_it_wrote() {
    let folder = Folder::new();
    let ran = hanging(&folder.file("number"), "1").run_limited().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(ran.status.code(), Some(101), "{said}");
    let process = folder.read("number");
    let expected = format!("killed after 1 s ({LIMIT}): ");
    let line = said.lines().position(|line| line.starts_with(&expected));
    let line = line.unwrap_or_else(|| panic!("no `{expected}`: {said}"));
    assert!(said.lines().nth(line).unwrap().contains("sleep 1000"), "{said}");
    assert_eq!(said.lines().nth(line + 1), Some(process.trim()), "{said}");
    until(|| has_ended(&process), || "what the child started lives".to_owned());
}

#[test]
fn children_of_a_killed_test_run_end() {
    let folder = Folder::new();
    let mut run = hanging(&folder.file("number"), "1000");
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).start_limited().unwrap();
    let number = || std::fs::read_to_string(folder.path().join("number")).unwrap_or_default();
    until(|| number().ends_with('\n'), || "the child did not start".to_owned());
    let is_started = || folder.path().join("number.started").exists();
    until(is_started, || "the run does not know its child".to_owned());
    assert!(!has_ended(&number()));
    run.kill().unwrap();
    run.wait().unwrap();
    until(|| has_ended(&number()), || "what the child started lives".to_owned());
}
