//! Folded stacks and flame graphs, as other tools read them.

use super::{compiled, report};
use crate::support::child::Limited as _;
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use crate::support::shown;
use std::collections::BTreeMap;
use std::process::Command;

/// A chain of calls; leaf functions keep their frames.
const PROGRAM: &str = r#"
#include <stdio.h>
__attribute__((noinline)) unsigned leaf(unsigned n, unsigned x) {
    for (unsigned i = 0; i < n; i++) x = x * 1664525u + 1013904223u;
    return x;
}
__attribute__((noinline)) unsigned middle(unsigned n, unsigned x) { return leaf(n, x) + 1; }
int main(void) {
    unsigned x = 0;
    for (unsigned i = 0; i < 100; i++) x += middle(2000000, i);
    printf("%u\n", x);
}
"#;
const FRAMES: [&str; 2] = ["-O0", "-fno-omit-frame-pointer"];

/// A recording of it with call chains; `None`, with a message, where that cannot be.
pub(super) fn recorded(folder: &Folder) -> Option<String> {
    recorded_of(folder, PROGRAM)
}

fn recorded_of(folder: &Folder, source: &str) -> Option<String> {
    recorded_with(folder, source, &FRAMES)
}

fn recorded_with(folder: &Folder, source: &str, flags: &[&str]) -> Option<String> {
    let program = compiled(folder, source, flags)?;
    let session = folder.file("run.tds");
    let recorded = tdtool(["record", "-g", "-o", &session, "--", &program]);
    if recorded.stderr.contains("cannot sample") {
        eprintln!("skipped: {}", recorded.stderr);
        return None;
    }
    recorded.succeeded();
    Some(session)
}

/// The frames of a flame graph: name, depth, from and share, as its attributes have them.
fn frames(svg: &str) -> Vec<(String, u32, f64, f64)> {
    let attribute = |line: &str, name: &str| -> String {
        let rest = line.split(&format!("{name}=\"")).nth(1).expect(name);
        rest.split('"').next().expect("a value").to_owned()
    };
    let number = |line: &str, name: &str| attribute(line, name).parse::<f64>().expect(name);
    let all = svg.lines().filter(|line| line.starts_with("<g class=\"f\""));
    let frame = |line: &str| {
        let depth = attribute(line, "data-depth").parse().expect("a depth");
        let share = number(line, "data-share");
        (attribute(line, "data-name"), depth, number(line, "data-from"), share)
    };
    all.map(frame).collect()
}

#[test]
fn a_flame_graph_has_the_widths_of_the_folded_stacks() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(session) = recorded(&folder) else { return };
    let (svg, folded) = (folder.file("flame.svg"), folder.file("folded"));
    let output = report(&[&session, "--flamegraph", &svg, "--folded", &folded]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let picture = folder.read("flame.svg");
    let frames = frames(&picture);
    // The same widths, from the other output: a stack's samples belong to each of its functions.
    let mut widths: BTreeMap<String, f64> = BTreeMap::new();
    let mut all = 0.0;
    for line in folder.read("folded").lines() {
        let (stack, samples) = line.rsplit_once(' ').expect("stack and samples");
        let samples: f64 = samples.parse().expect("samples");
        all += samples;
        let mut path = String::new();
        for name in stack.split(';') {
            path = format!("{path};{name}");
            *widths.entry(path.clone()).or_default() += samples;
        }
    }
    let mut path: Vec<String> = Vec::new();
    for (name, depth, _, share) in &frames {
        path.truncate((*depth as usize).saturating_sub(1));
        if *depth > 0 {
            path.push(name.replace("&lt;", "<").replace("&gt;", ">"));
            let stack: String = path.iter().map(|name| format!(";{name}")).collect();
            let expected = widths.get(&stack).unwrap_or_else(|| panic!("{stack} in {widths:?}"));
            // Periods of a clock differ by little.
            assert!((share - expected / all).abs() < 0.02, "{stack}: {share}, {expected} of {all}");
        }
    }
    let names: Vec<&str> = frames.iter().map(|f| f.0.as_str()).collect();
    assert!(names.starts_with(&["all", "work"]), "{names:?}");
    assert!(["main", "middle", "leaf"].iter().all(|n| names.contains(n)), "{names:?}");
}

#[test]
fn a_flame_graph_is_one_file_that_loads_nothing() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(session) = recorded(&folder) else { return };
    for name in ["flame.svg", "flame.html"] {
        report(&[&session, "--flamegraph", &folder.file(name)]).succeeded();
        let text = folder.read(name);
        // The only address is the name of SVG's namespace, which nobody loads.
        let addresses: Vec<&str> =
            text.match_indices("://").map(|(at, _)| &text[at - 4..at + 20]).collect();
        assert_eq!(addresses, ["http://www.w3.org/2000/s"], "{name}");
        for loads in ["src=", "href=", "url(", "@import", "import(", "fetch("] {
            assert!(!text.contains(loads), "{name}: {loads}");
        }
        assert!(text.contains("search"), "{name}");
    }
    let refused = report(&[&session, "--flamegraph", &folder.file("flame.png")]);
    assert!(!refused.status.success() && refused.stderr.contains(".svg"), "{refused:?}");
}

/// Twenty times the calls: what is called has more time of its own, and its callers have it through it.
#[test]
fn a_differential_flame_graph_colours_the_function_that_gained_time() {
    let _busy = busy();
    let (folder, other) = (Folder::new(), Folder::new());
    let fewer = PROGRAM.replace("i < 100;", "i < 10;");
    let more = PROGRAM.replace("i < 100;", "i < 200;");
    let Some(a) = recorded_of(&folder, &fewer) else { return };
    let Some(b) = recorded_of(&other, &more) else { return };
    // The legend's colours of more and of less than 5 % of A's time.
    for (from, to, colour) in [(&a, &b, "#d6604d"), (&b, &a, "#4393c3")] {
        for name in ["diff.svg", "diff.html"] {
            let ran = tdtool(["diff", from, to, "--flamegraph", &folder.file(name)]).succeeded();
            assert!(ran.stdout.contains("leaf"), "{}", ran.stdout);
            let picture = folder.read(name);
            let of = |function: &str| {
                let at = picture.find(&format!("data-name=\"{function}\"")).expect(function);
                picture[at..].split("</g>").next().expect("a frame").to_owned()
            };
            assert!(of("leaf").contains(&format!("fill=\"{colour}\"")), "{}", of("leaf"));
            assert!(!of("main").contains(&format!("fill=\"{colour}\"")), "{}", of("main"));
        }
    }
    let refused = tdtool(["diff", &a, &b, "--flamegraph", &a]);
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    let report = folder.write("a.json", "{\"schema\":\"tdtool.report/1\"}");
    let refused = tdtool(["diff", &report, &b, "--flamegraph", &folder.file("no.svg")]);
    assert!(refused.stderr.contains(&report), "{}", refused.stderr);
}

#[test]
fn nothing_is_written_over_the_recording() {
    let folder = Folder::new();
    let session = folder.write("run.svg", "not a recording, and not to be lost");
    std::os::unix::fs::symlink(&session, folder.path().join("link.svg")).expect("a link");
    let link = folder.file("link.svg");
    let both = folder.file("both.svg");
    let asked = [
        &["report", &session, "--flamegraph", &session][..],
        &["report", &session, "--folded", &session],
        &["report", &session, "--output", &session],
        &["report", &session, "--flamegraph", &link],
        &["report", &session, "--folded", &both, "--flamegraph", &both],
    ];
    assert_shown!("recording_written_over", shown::each(&asked, &folder));
    assert_eq!(folder.read("run.svg"), "not a recording, and not to be lost");
}

/// Read again by Go's pprof.
#[test]
fn a_profile_of_pprof_has_the_samples_of_the_folded_stacks() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(session) = recorded(&folder) else { return };
    let (profile, folded) = (folder.file("profile.pb.gz"), folder.file("folded"));
    let output = report(&[&session, "--pprof", &profile, "--folded", &folded]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let lines = folder.read("folded");
    let samples = |line: &str| line.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok());
    let all: u64 = lines.lines().filter_map(samples).sum();
    let go = ["tool", "pprof", "-top", "-sample_index=samples", &profile];
    let Ok(output) = Command::new("go").args(go).run_limited() else {
        return eprintln!("skipped: go is not installed");
    };
    let seen = String::from_utf8_lossy(&output.stdout);
    assert!(seen.contains(&format!("of {all} total")), "{all}: {seen}");
    // Its file is the program, not what the first sample was in.
    let program = lines.lines().find_map(|l| l.split(';').next()).unwrap_or_default();
    assert!(seen.lines().any(|l| l == format!("File: {program}")), "{program}: {seen}");
    // Cumulated: all but what the loader does is called by main.
    let main = seen.lines().find(|line| line.ends_with(" main")).expect("main");
    let below: u64 = lines.lines().filter(|l| l.contains(";main;")).filter_map(samples).sum();
    assert_eq!(main.split_whitespace().nth(3), Some(below.to_string().as_str()), "{seen}");
    // The source of a function, each line with its samples: most of leaf's are in its loop.
    let list = ["tool", "pprof", "-list", "^leaf$", &profile];
    let listed = Command::new("go").args(list).run_limited().expect("go");
    let listed = String::from_utf8_lossy(&listed.stdout);
    let source = "for (unsigned i = 0; i < n; i++)";
    let line = listed.lines().find(|line| line.contains(source)).expect(source);
    let leaf: u64 = lines.lines().filter(|l| l.contains(";leaf ")).filter_map(samples).sum();
    let own = line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
    assert!(own.is_some_and(|own| 2 * own > leaf), "{leaf}: {listed}");
}

/// Without frame pointers the kernel follows what else is in the register.
#[test]
fn frames_that_nobody_knows_are_one_frame() {
    let _busy = busy();
    let folder = Folder::new();
    let source = r#"
        #include <stdio.h>
        /* A chain of frames that belong to no code: each word is the address of the next one. */
        static void *frames[2 * 64];
        __attribute__((noipa)) unsigned lost(unsigned n, unsigned x) {
            for (unsigned i = 0; i < 63; i++) {
                frames[2 * i] = &frames[2 * i + 2];
                frames[2 * i + 1] = &frames[2 * i];
            }
            void *chain = frames;
            __asm__ volatile("push %%rbp\n\tmov %%rsi, %%rbp\n1:\n\timul $1664525, %%eax, %%eax\n\tdecl %%ecx\n\tjnz 1b\n\tpop %%rbp"
                             : "+a"(x), "+S"(chain), "+c"(n) : : "cc", "memory");
            return x;
        }
        int main(void) {
            unsigned x = 1;
            for (int i = 0; i < 100; i++) x += lost(3000000, x);
            printf("%u\n", x);
        }
    "#;
    need!(cfg!(target_arch = "x86_64"), "its assembly is that of x86-64");
    let Some(session) = recorded_with(&folder, source, &["-fomit-frame-pointer", "-mno-red-zone"])
    else {
        return;
    };
    let stacks = report(&[&session, "--folded", "-"]).succeeded().stdout;
    assert!(stacks.contains("[unknown];lost"), "{stacks}");
    assert!(!stacks.contains("[unknown];[unknown]"), "{stacks}");
}
