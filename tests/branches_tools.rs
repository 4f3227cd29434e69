//! `tdtool branches`: what it writes for other tools is read by these tools, and is what they make of the recording
//! themselves. Each is skipped aloud where it is not installed.

use crate::support::child::Limited as _;
use crate::support::files::{Folder, shared, text};
use crate::support::run::tdtool;
use crate::support::simlbr::{ran, recorded};
use crate::support::tools::gcc;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The branches of a recording in a format, in a file.
fn exported(recording: &Path, more: &[&str], format: &str, to: &Path) -> String {
    let all = [&["branches", text(recording), "--format", format][..], more].concat();
    let done = tdtool(all).succeeded();
    fs::write(to, &done.stdout).unwrap();
    done.stdout
}

/// simlbr/README.md: 62 ranges (50,313) and 46 edges (51,936), byte for byte as llvm-profgen has them.
#[test]
fn llvm_profgen_makes_the_same_of_the_recording() {
    let Some(folder) = shared("simlbr") else { return };
    let (place, recording) = (Folder::new(), folder.join("counts.perf.data"));
    let theirs = place.path().join("theirs");
    let mut profgen = Command::new("llvm-profgen-14");
    profgen.args(["--skip-symbolization", "--use-offset=0", "-o", text(&theirs)]);
    profgen.arg(format!("--perfdata={}", text(&recording)));
    profgen.arg(format!("--binary={}", text(&folder.join("kernels"))));
    if !ran(&mut profgen) {
        return;
    }
    let more = ["--symfs", text(folder.parent().unwrap())];
    let ours = exported(&recording, &more, "profgen", &place.path().join("ours"));
    assert!(ours == fs::read_to_string(&theirs).unwrap(), "{ours}");
}

/// BOLT reads all 46 branches and 62 ranges, finds them in the code, and counts each branch as the document does.
#[test]
fn bolt_reads_its_profile() {
    let Some(folder) = shared("simlbr") else { return };
    let (place, recording) = (Folder::new(), folder.join("counts.perf.data"));
    let (ours, out) = (place.path().join("ours"), place.path().join("out.fdata"));
    let more = ["--symfs", text(folder.parent().unwrap())];
    exported(&recording, &more, "bolt", &ours);
    let tools = ["perf2bolt", "/usr/lib/llvm-15/bin/perf2bolt", "/usr/lib/llvm-16/bin/perf2bolt"];
    let program = folder.join("kernels");
    let arguments = ["-pa", "-p", text(&ours), "-o", text(&out), text(&program)];
    let Some(done) =
        tools.iter().find_map(|tool| Command::new(tool).args(arguments).run_limited().ok())
    else {
        return eprintln!("skipped: perf2bolt is not installed");
    };
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(said.contains("read 108 aggregated LBR entries"), "{said}");
    assert!(said.contains("traces mismatching disassembled function contents: 0 (0.0%)"), "{said}");
    // `1 FROM OFFSET 1 TO OFFSET MISPREDICTED COUNT`; the same from a branch to the code after it, not taken.
    let written = fs::read_to_string(&out).unwrap();
    let mut counts: HashMap<(String, String), Vec<(u64, u64)>> = HashMap::new();
    for line in written.lines() {
        let [_, from, at, _, to, target, wrong, count] = line.split(' ').collect::<Vec<_>>()[..]
        else {
            continue;
        };
        let key = (format!("{from}+{at}"), format!("{to}+{target}"));
        let numbers = (count.parse().unwrap(), wrong.parse().unwrap());
        counts.entry(key).or_default().push(numbers);
    }
    let symbols = crate::support::tools::tool("nm", &[text(&program)]).expect("nm");
    let start: HashMap<&str, u64> = symbols
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split(' ').collect();
            Some((*cells.get(2)?, u64::from_str_radix(cells[0], 16).ok()?))
        })
        .collect();
    let done = tdtool(["branches", text(&recording), more[0], more[1], "--format", "json"]);
    let mut compared = 0;
    for edge in done.json()["edges"].as_array().unwrap() {
        let place = |address: &str, function: &str| {
            let function = edge[function].as_str()?;
            let at = u64::from_str_radix(&edge[address].as_str()?[2..], 16).ok()?;
            Some(format!("{function}+{:x}", at - start.get(function)?))
        };
        let ends = place("from", "from_function").zip(place("to", "to_function"));
        let Some(found) = ends.and_then(|ends| counts.get(&ends)) else { continue };
        let number = |key: &str| edge[key].as_u64().unwrap_or(0);
        let own = (number("count"), number("mispredicted"));
        assert!(found.contains(&own), "{edge}: {found:?}");
        compared += 1;
    }
    assert!(compared >= 40, "{compared} branches in {written}");
}

/// Functions that no compiler inlines, in DWARF 4: create_llvm_prof reads no other.
const LOOPS: &str = "
#include <stdint.h>
#define N __attribute__((noinline, noclone))
volatile uint64_t sink;
N uint64_t shifts(uint64_t x, int n) { for (int i = 0; i < n; i++) x ^= x << 7 ^ i; return x; }
N uint64_t adds(uint64_t x, int n) { for (int i = 0; i < n; i++) { if (x & 64) x += i; else x *= 3; } return x; }
N uint64_t both(uint64_t x, int n) { return adds(shifts(x, n), 2 * n); }
int main(void) { for (int i = 0; i < 300; i++) sink = both(sink + i, 40 + i % 7); return 0; }
";

/// From our counts create_llvm_prof makes the profile that it makes from the recording.
#[test]
fn autofdo_makes_the_same_profile_of_the_counts_as_of_the_recording() {
    if shared("simlbr").is_none() {
        return;
    }
    let place = Folder::new();
    let at = |name: &str| place.path().join(name);
    if !ran(Command::new("create_llvm_prof").arg("--version")) {
        return;
    }
    let options =
        ["-O2", "-gdwarf-4", "-fno-tree-vectorize", "-static", "-no-pie", "-Wl,--build-id"];
    let Some(program) = gcc(place.path(), LOOPS, &options, "program") else { return };
    let options = ["--period", "301", "--max", "300000"];
    let Some(recording) = recorded(place.path(), &program, &options) else { return };
    exported(&recording, &[], "autofdo", &at("counts"));
    let profile = |profiler: &str, from: &Path| {
        let out = at(profiler);
        let mut command = Command::new("create_llvm_prof");
        command.arg(format!("--profiler={profiler}")).arg(format!("--profile={}", text(from)));
        command.arg(format!("--binary={}", text(&program))).arg(format!("--out={}", text(&out)));
        ran(command.arg("--format=text")).then(|| fs::read_to_string(&out).unwrap())
    };
    let (Some(ours), Some(theirs)) = (profile("text", &at("counts")), profile("perf", &recording))
    else {
        return;
    };
    assert_eq!(ours, theirs);
    assert!(ours.contains("adds:") && ours.contains("shifts:"), "{ours}");
}

/// A profile of each of several events, and none of both together; read by Go's pprof.
#[test]
fn pprof_has_a_profile_of_each_event() {
    let Some(folder) = shared("simlbr") else { return };
    let place = Folder::new();
    let files = ["levels", "counts"].map(|name| folder.join(format!("{name}.perf.data")));
    let roots = text(folder.parent().unwrap()).to_owned();
    let all = ["branches", text(&files[0]), text(&files[1]), "--symfs", &roots];
    let both = tdtool([&all[..], &["--format", "pprof"]].concat());
    assert_eq!(both.code(), Some(1));
    assert!(both.stderr.contains("--event-number"), "{}", both.stderr);
    let document = tdtool([&all[..], &["--format", "json"]].concat()).json();
    for event in document["events"].as_array().unwrap() {
        let (number, path) = (event["event"].to_string(), place.path().join("profile"));
        let more = ["--format", "pprof", "--event-number", &number, "-o", text(&path)];
        tdtool([&all[..], &more].concat()).succeeded();
        let top = ["tool", "pprof", "-top", "-sample_index=branches", text(&path)];
        let Ok(output) = Command::new("go").args(top).run_limited() else {
            return eprintln!("skipped: go is not installed");
        };
        let seen = String::from_utf8_lossy(&output.stdout).into_owned();
        let entries = of_module(&document, event);
        assert!(seen.contains(&format!(" of {entries} total")), "{entries}: {seen}");
    }
}

/// The branches of an event.
fn of_module(document: &Value, event: &Value) -> u64 {
    let edges = document["edges"].as_array().unwrap().iter();
    let own = edges.filter(|edge| edge["event"] == event["event"]);
    own.map(|edge| edge["count"].as_u64().unwrap()).sum()
}
