//! `tdtool pgo`: profiles have what the program did, and optimisers read them.

use crate::probe::counts::PLAIN;
use crate::support::child::Limited as _;
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::{Ran, run, tdtool};
use crate::support::tools::{gcc, tool};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes a profile of `PLAIN`, which ends with status 3; `None`, with a message, where it cannot be traced.
pub fn profiled(folder: &Folder, program: &Path, options: &[&str]) -> Option<(String, Ran)> {
    let (profile, result) = (folder.file("profile"), folder.file("result"));
    let command = ["--", text(program), &result];
    let ran = tdtool([&["pgo", "-o", &profile], options, &command[..]].concat());
    match ran.code() {
        Some(3) if Path::new(&profile).exists() => Some((folder.read("profile"), ran)),
        Some(3) => {
            eprintln!("skipped: {}", ran.stderr);
            None
        }
        _ => panic!("{}", ran.stderr),
    }
}

/// Start and end of functions, by name, as nm(1) has them.
pub fn symbols(program: &Path) -> BTreeMap<String, (u64, u64)> {
    let all = tool("nm", &["-S", text(program)]).expect("binutils come with gcc");
    let hex = |text: &str| u64::from_str_radix(text, 16).expect("an address");
    let line = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
        [start, size, "t" | "T", name] => {
            Some((name.to_owned(), (hex(start), hex(start) + hex(size))))
        }
        _ => None,
    };
    all.lines().filter_map(line).collect()
}

/// A line of BOLT's pre-aggregated profile.
#[derive(Debug)]
pub struct Line {
    pub is_branch: bool,
    pub from: u64,
    pub to: u64,
    pub count: u64,
}

pub fn lines(profile: &str) -> Vec<Line> {
    let hex = |text: &str| u64::from_str_radix(text, 16).expect("an address");
    let line = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
        ["B", from, to, count, "0"] => {
            let count = count.parse().unwrap();
            Line { is_branch: true, from: hex(from), to: hex(to), count }
        }
        ["F", from, to, count] => {
            let count = count.parse().unwrap();
            Line { is_branch: false, from: hex(from), to: hex(to), count }
        }
        _ => panic!("{line}"),
    };
    profile.lines().map(line).collect()
}

/// Trip counts and calls of the source; what comes into a place goes out of it.
#[test]
fn a_profile_has_the_calls_and_trips_of_the_source() {
    let _busy = busy();
    for options in [&["-O2"][..], &["-O1", "-no-pie"]] {
        let folder = Folder::new();
        let Some(program) = gcc(folder.path(), PLAIN, options, "program") else { return };
        let Some((profile, _)) = profiled(&folder, &program, &[]) else { return };
        let (lines, symbols) = (lines(&profile), symbols(&program));
        let within = |at: u64| symbols.values().find(|(start, end)| (*start..*end).contains(&at));
        for line in &lines {
            assert!(within(line.to).is_some(), "{line:x?}");
            assert!(line.from == 0 && line.is_branch || within(line.from).is_some(), "{line:x?}");
            assert!(line.is_branch || within(line.from) == within(line.to), "{line:x?}");
        }
        let into = |at: u64| -> u64 { lines.iter().filter(|l| l.to == at).map(|l| l.count).sum() };
        // Calls for fib(25): 2 fib(26) - 1.
        assert_eq!(into(symbols["fib"].0), 242_785, "{profile}");
        assert_eq!(["main", "nested", "choose"].map(|name| into(symbols[name].0)), [1, 1, 1]);
        let (start, end) = symbols["nested"];
        let mut inside: Vec<u64> =
            lines.iter().filter(|l| (start..end).contains(&l.from)).map(|l| l.count).collect();
        inside.sort_unstable();
        // The inner loop goes back 2999 times of 3000, the outer one 69 times of 70. Where a block without a probe lies
        // beside the inner one, the counts leave it open how many of its 70 executions do not enter it.
        let most = inside.last().copied().unwrap_or(0);
        assert!(most.abs_diff(70 * 2999) <= 70 && inside.contains(&69), "{inside:?}");
    }
}

/// By the document: each block is left as often as it is entered, and its edges are those of the profile.
#[test]
fn what_enters_a_block_leaves_it() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PLAIN, &["-O2"], "program") else { return };
    let Some((document, _)) = profiled(&folder, &program, &["--for", "json"]) else { return };
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let rows = |key: &str| document[key].as_array().unwrap().clone();
    let sum = |key: &str, at: &serde_json::Value, kinds: &[&str]| -> u64 {
        let own = |edge: &&serde_json::Value| {
            edge[key] == *at && kinds.contains(&edge["kind"].as_str().unwrap())
        };
        rows("edges").iter().filter(own).map(|edge| edge["count"].as_u64().unwrap()).sum()
    };
    let entries: BTreeMap<String, u64> = rows("functions")
        .iter()
        .map(|one| {
            (one["start"].as_str().unwrap().to_owned(), one["other_entries"].as_u64().unwrap())
        })
        .collect();
    let (mut into, mut out) = (0, 0);
    for block in rows("blocks") {
        let (start, count) = (&block["start"], block["count"].as_u64().unwrap());
        let outside = entries.get(start.as_str().unwrap()).copied().unwrap_or(0);
        let all = ["next", "jump", "call", "tail"];
        assert_eq!(sum("to", start, &all) + outside, count, "into {block}");
        into += 1;
        // A return leads elsewhere.
        let leaves = sum("block", start, &["next", "jump", "tail"]);
        if leaves > 0 {
            assert_eq!(leaves, count, "out of {block}");
            out += 1;
        }
    }
    assert!(into >= 20 && out >= 15, "{into} and {out} blocks");
}

/// A stack machine with a computed goto after each instruction: 1,000 rounds of five instructions.
pub const GOTO: &str = r#"
#include <stdio.h>
__attribute__((noipa)) long machine(const char *code, long rounds) {
    static void *const to[] = { &&inc, &&twice, &&less, &&again, &&end };
    long x = 1; const char *at = code;
    goto *to[*at++ - 'a'];
inc: x += 1; goto *to[*at++ - 'a'];
twice: x *= 2; goto *to[*at++ - 'a'];
less: x -= 3; goto *to[*at++ - 'a'];
again: if (--rounds > 0) at = code; goto *to[*at++ - 'a'];
end: return x;
}
int main(int count, char **arguments) {
    FILE *out = fopen(arguments[1], "w");
    fprintf(out, "%ld\n", machine("aabcde", 1000));
    return 3;
}
"#;

/// By the code: a→a, a→b, b→c, c→d 1,000 times each, d→a 999 times, into the first a once more.
#[test]
fn targets_of_computed_gotos_are_recorded() {
    let _busy = busy();
    for more in ["-no-pie", "-pie"] {
        let folder = Folder::new();
        let options = ["-O2", more];
        let Some(program) = gcc(folder.path(), GOTO, &options, "program") else { return };
        let Some((profile, ran)) = profiled(&folder, &program, &["--targets"]) else { return };
        let (start, end) = symbols(&program)["machine"];
        let inside = |l: &&Line| (start..end).contains(&l.from) && (start..end).contains(&l.to);
        let lines = lines(&profile);
        let jumps: Vec<u64> =
            lines.iter().filter(|l| l.is_branch).filter(inside).map(|l| l.count).collect();
        for expected in [999, 1000] {
            assert!(jumps.contains(&expected), "{more}: {jumps:?} {}", ran.stderr);
        }
        let is_near = |n: &u64| (n + 1) % 1000 <= 2;
        assert!(jumps.iter().all(is_near), "{more}: {jumps:?}");
        let Some((document, _)) = profiled(&folder, &program, &["--targets", "--for", "json"])
        else {
            return;
        };
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        let edges = document["edges"].as_array().unwrap();
        let ends: BTreeSet<_> =
            edges.iter().map(|e| (e["from"].to_string(), e["to"].to_string())).collect();
        assert_eq!(ends.len(), edges.len(), "{document}");
    }
}

/// A library that calls one of two functions by a table: of each five calls, two of the first and three of the second.
const TABLE: &str = r#"
static long one(long x) { return x + 1; }
static long two(long x) { return x * 3; }
static long (*const table[])(long) = { one, two };
__attribute__((noipa)) long work(long n, const char *which) {
    long (*const *to)(long) = table, s = 0;
    __asm__("" : "+r"(to));
    for (long i = 0; i < n; i++) s = to[which[i % 5] - '0'](s);
    return s;
}
"#;

#[test]
fn targets_of_calls_in_a_library_are_recorded() {
    let _busy = busy();
    let folder = Folder::new();
    let options = ["-O2", "-shared", "-fPIC"];
    let Some(library) = gcc(folder.path(), TABLE, &options, "library.so") else { return };
    let main = "long work(long, const char *); int main(void) { work(1000, \"01101\"); return 3; }";
    let options = ["-O2", "-Wl,--no-as-needed", text(&library)];
    let Some(program) = gcc(folder.path(), main, &options, "program") else {
        return;
    };
    let options = ["--targets", "--module", text(&library)];
    let Some((profile, ran)) = profiled(&folder, &program, &options) else { return };
    let (lines, symbols) = (lines(&profile), symbols(&library));
    let calls = |name: &str| -> u64 {
        let own = lines.iter().filter(|l| l.to == symbols[name].0 && l.from != 0);
        own.map(|l| l.count).sum()
    };
    assert_eq!([calls("one"), calls("two")], [400, 600], "{profile} {}", ran.stderr);
}

/// Changes a document.
type Change<'c> = &'c dyn Fn(&mut serde_json::Value);

/// Counts of two runs are twice those of one; those of another build are refused.
#[test]
fn counts_of_several_runs_are_added_up() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PLAIN, &["-O2"], "program") else { return };
    let (counts, result) = (folder.file("counts.json"), folder.file("result"));
    let ran = tdtool(["count", "--format", "json", "-o", &counts, "--", text(&program), &result]);
    if ran.code() != Some(3) {
        return eprintln!("skipped: {}", ran.stderr);
    }
    let merged = |inputs: usize| {
        let options = ["--merge", &counts].repeat(inputs);
        let all = [&["pgo", "-o", "-", "--for", "bolt"], &options[..]].concat();
        lines(&tdtool(all).succeeded().stdout)
    };
    let (one, two) = (merged(1), merged(2));
    assert_eq!(one.len(), two.len());
    for (one, two) in one.iter().zip(&two) {
        assert_eq!((one.from, one.to), (two.from, two.to));
        // Fitted counts are rounded.
        assert!((2 * one.count).abs_diff(two.count) <= 1, "{one:x?} {two:x?}");
    }
    // Limits of the runs are passed on, and counts that cannot be of this file are refused.
    let changed = |change: Change<'_>| {
        let mut document = serde_json::from_str(&folder.read("counts.json")).unwrap();
        change(&mut document);
        let path = folder.file("changed.json");
        std::fs::write(&path, document.to_string()).unwrap();
        tdtool(["pgo", "-o", "-", "--merge", &path])
    };
    let noted = changed(&|document| {
        document["interrupted"] = 2.into();
        document["contradictions"] = serde_json::json!(["7 enter, 6 leave"]);
    })
    .succeeded();
    for part in ["signal 2", "7 enter, 6 leave"] {
        assert!(noted.stderr.contains(part), "{}", noted.stderr);
    }
    let refusals: [(Change<'_>, &str); 3] = [
        (&|document| document["blocks"][0]["start"] = "0x3".into(), "0x3"),
        (
            &|document| document["blocks"][0]["count"] = ((1_u64 << 53) + 1).into(),
            "9007199254740993",
        ),
        (&|document| document["modules"][0]["build_id"] = serde_json::Value::Null, "none"),
    ];
    for (change, part) in refusals {
        let refused = changed(change);
        assert_eq!(refused.code(), Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    let options = ["-O2", "-DCHANGED", "-Wl,--build-id=0x1234"];
    gcc(folder.path(), PLAIN, &options, "program").unwrap();
    let refused = tdtool(["pgo", "-o", "-", "--merge", &counts]);
    assert_eq!(refused.code(), Some(1));
    assert!(refused.stderr.contains("1234"), "{}", refused.stderr);
}

/// Executed functions only, callers near what they call.
#[test]
fn a_linker_gets_the_executed_functions_in_order() {
    let _busy = busy();
    let folder = Folder::new();
    let source = format!("void unused(void) {{}}\n{PLAIN}");
    let Some(program) = gcc(folder.path(), &source, &["-O2"], "program") else { return };
    let Some((order, _)) = profiled(&folder, &program, &["--for", "lld"]) else { return };
    let all: Vec<&str> = order.lines().collect();
    let unique: BTreeSet<&str> = all.iter().copied().collect();
    assert_eq!(unique.len(), all.len());
    for name in ["main", "fib", "nested", "choose"] {
        assert!(unique.contains(name), "{order}");
    }
    assert!(!unique.contains("unused"), "{order}");
    // Without symbols there is nothing that a linker could order.
    let Some(program) = gcc(folder.path(), &source, &["-O2", "-s"], "stripped") else { return };
    let Some((order, _)) = profiled(&folder, &program, &["--for", "lld"]) else { return };
    assert!(order.lines().all(|name| !name.starts_with("0x")), "{order}");
}

/// Without line numbers no compiler can read the profile: the next step is to compile again.
#[test]
fn a_program_without_lines_is_compiled_again_first() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PLAIN, &["-O2"], "program") else { return };
    let Some((_, ran)) = profiled(&folder, &program, &["--for", "profgen"]) else { return };
    assert!(ran.stderr.contains("-gline-tables-only"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("llvm-profgen"), "{}", ran.stderr);
    let (profile, result) = (folder.file("none"), folder.file("result"));
    let ran = tdtool(["pgo", "-o", &profile, "--for", "clang", "--", text(&program), &result]);
    assert!(ran.code() == Some(1) && !Path::new(&profile).exists(), "{}", ran.stderr);
    assert!(ran.stderr.contains("-gline-tables-only"), "{}", ran.stderr);
}

/// The first of these programs that is there.
pub fn installed(names: &[&str]) -> Option<PathBuf> {
    let is_there = |name: &&&str| {
        Command::new(name).arg("--version").run_limited().is_ok_and(|ran| ran.status.success())
    };
    let found = names.iter().find(is_there).map(PathBuf::from);
    if found.is_none() {
        eprintln!("skipped: none of {names:?} is installed");
    }
    found
}

/// BOLT finds every trace in the code, and what it makes does the same.
#[test]
fn bolt_optimises_by_the_profile() {
    let Some(bolt) = installed(&["llvm-bolt", "llvm-bolt-19"]) else { return };
    let _busy = busy();
    let folder = Folder::new();
    // BOLT leaves functions alone whose tables of jumps are found before the loop around them.
    let options = ["-O2", "-Wl,-q", "-fno-jump-tables"];
    let Some(program) = gcc(folder.path(), PLAIN, &options, "program") else { return };
    let Some(_) = profiled(&folder, &program, &[]) else { return };
    let (made, result) = (folder.file("made"), folder.file("result"));
    let expected = folder.read("result");
    let options = ["-pa", "-reorder-blocks=ext-tsp", "-split-functions"];
    let ran = run(Command::new(bolt)
        .args([text(&program), "-o", &made, "-p", &folder.file("profile")])
        .args(options))
    .succeeded();
    let said = format!("{}{}", ran.stdout, ran.stderr);
    let all_match = |line: &str| line.contains("mismatching") && line.ends_with("(0.0%)");
    assert!(said.lines().any(all_match), "{said}");
    assert_eq!(run(Command::new(&made).arg(&result)).code(), Some(3));
    assert_eq!(folder.read("result"), expected);
}

/// The printed command makes a program that does the same, with and without relocations.
#[test]
fn the_printed_command_of_bolt_works() {
    if installed(&["llvm-bolt", "llvm-bolt-19"]).is_none() {
        return;
    }
    let _busy = busy();
    for options in [&["-O2", "-fno-jump-tables"][..], &["-O2", "-fno-jump-tables", "-Wl,-q"]] {
        let folder = Folder::new();
        let Some(program) = gcc(folder.path(), PLAIN, options, "program") else { return };
        let Some((_, ran)) = profiled(&folder, &program, &[]) else { return };
        // It may be broken over several lines.
        let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = said.split('`').find(|words| words.starts_with("llvm-bolt"));
        let words = words.unwrap_or_else(|| panic!("{said}"));
        run(Command::new("sh").args(["-c", words])).succeeded();
        let (made, expected) = (format!("{}.bolt", text(&program)), folder.read("result"));
        assert_eq!(run(Command::new(&made).arg(folder.file("result"))).code(), Some(3));
        assert_eq!(folder.read("result"), expected);
    }
}

/// llvm-profgen attributes the counts to functions: as many calls and trips.
#[test]
fn llvm_profgen_reads_the_profile() {
    let Some(profgen) = installed(&["llvm-profgen", "llvm-profgen-19"]) else { return };
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PLAIN, &["-O2", "-g"], "program") else { return };
    let Some((_, _)) = profiled(&folder, &program, &["--for", "profgen"]) else { return };
    let made = folder.file("made");
    run(Command::new(profgen).args([
        &format!("--unsymbolized-profile={}", folder.file("profile")),
        &format!("--binary={}", text(&program)),
        &format!("--output={made}"),
        "--use-offset=0",
        "--format=text",
    ]))
    .succeeded();
    // `NAME:TOTAL:CALLS`, then lines of the function.
    let text = folder.read("made");
    let calls = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
        line.and_then(|line| line.split(':').nth(1)?.parse::<u64>().ok())
    };
    assert_eq!([calls("fib"), calls("nested")], [Some(242_785), Some(1)], "{text}");
    assert!(text.contains(" 210000"), "{text}");
    // Made by it at once.
    let Some((own, ran)) = profiled(&folder, &program, &["--for", "clang"]) else { return };
    assert_eq!(own, text);
    assert!(ran.stderr.contains("-fprofile-sample-use="), "{}", ran.stderr);
}
