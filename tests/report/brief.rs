//! The default text: the verdict first, what says nothing left out and counted, commands that run.

use super::{compiled, report};
use crate::support::files::{Folder, root, text};
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use crate::support::shown;

/// One hot loop.
const LOOP: &str = r#"
#include <stdlib.h>
__attribute__((noinline)) static unsigned long dependent(unsigned long x, long rounds) {
    for (long i = 0; i < rounds; i++) x = (x + i) ^ (x >> 3);
    return x;
}
int main(int count, char **arguments) { return dependent(count, atol(arguments[1])) == 1; }
"#;

/// Nothing but page faults: each page of fresh memory is touched once.
const FAULTS: &str = r#"
#include <sys/mman.h>
int main(void) {
    for (int round = 0; round < 60; round++) {
        long size = 16L << 20;
        char *all = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(all, size, MADV_NOHUGEPAGE);
        for (long at = 0; at < size; at += 4096) all[at] = 1;
        munmap(all, size);
    }
    return 0;
}
"#;

/// Most lines of a program with one hot loop, and of any.
const ONE: usize = 24;
const ANY: usize = 40;

#[test]
fn a_program_with_one_hot_loop_fits_on_a_screen() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, LOOP, &[]) else { return };
    let command = ["--", &program, "300000000"];
    let shown = report(&command).stderr;
    need!(shown.contains("samples of cpu-clock"), shown);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.len() <= ONE, "{} lines: {shown}", lines.len());
    let verdict = shown.split("\n\n").nth(1).expect("a verdict");
    assert!(verdict.contains("dependent"), "{shown}");
    assert!(lines.iter().any(|line| line.contains("  loop  ")), "{shown}");
    for once in ["no core PMU", "--estimate"] {
        assert_eq!(shown.matches(once).count(), 1, "{once}: {shown}");
    }
    assert!(
        shown.contains(&format!("\n        tdtool report --estimate -- {program} 300000000\n")),
        "{shown}"
    );
    assert!(
        shown.contains(&format!("tdtool block {program}:@0x")) && shown.contains(" -- 300000000\n"),
        "{shown}"
    );
    // What is left out is one option away.
    let all = report(&[&["-v"][..], &command].concat()).stderr;
    assert!(all.contains("Software counts"), "{all}");
    let quiet = report(&[&["-q"][..], &command].concat()).stderr;
    assert!(!quiet.contains("next:") && !quiet.contains("note:"), "{quiet}");
    assert!(quiet.contains("dependent"), "{quiet}");
}

#[test]
fn a_recording_offers_the_estimate_of_its_command() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, LOOP, &[]) else { return };
    let file = folder.file("work.tds");
    tdtool(["record", "-o", &file, "--", &program, "300000000"]).succeeded();
    let shown = report(&[&file]).stdout;
    need!(shown.contains("samples of cpu-clock"), shown);
    let estimate = format!("\n        tdtool report --estimate -- {program} 300000000\n");
    assert!(shown.contains(&estimate), "{shown}");
    assert!(shown.contains(&format!("tdtool block {program}:@0x")), "{shown}");
    // Its program is elsewhere now.
    std::fs::rename(&program, folder.file("moved")).expect("renamed");
    let shown = report(&[&file]).stdout;
    assert!(!shown.contains("tdtool report --estimate"), "{shown}");
}

#[test]
fn commands_to_go_on_with_have_the_options_of_the_user() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, LOOP, &[]) else { return };
    let tables = root().join("events/amd");
    let options = ["--uarch", "zen4", "--tables", text(&tables)];
    let command = ["--", &program, "300000000"];
    let shown = report(&[&options[..], &["--user"], &command].concat()).stderr;
    need!(shown.contains("samples of cpu-clock"), shown);
    let given = options.join(" ");
    let estimate =
        format!("\n        tdtool report {given} --user --estimate -- {program} 300000000\n");
    assert!(shown.contains(&estimate), "{shown}");
    assert!(shown.contains(&format!("tdtool block {given} {program}:@0x")), "{shown}");
}

/// By construction: nearly all of the time is the kernel's, for page faults.
#[test]
fn a_program_in_the_kernel_gets_advice_on_the_kernel() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, FAULTS, &[]) else { return };
    let shown = report(&["--", &program]).stderr;
    need!(!shown.contains("kernel mode is not sampled"), shown);
    let next = shown.split("next: ").nth(1).expect("what to do");
    let first = next.lines().nth(1).unwrap_or_default().trim();
    assert!(first.starts_with("tdtool report --callers ") && first.ends_with(&program), "{shown}");
    assert!(shown.lines().count() <= ANY, "{shown}");
}

/// Evidence of other processors: the same text anywhere. A chain of divisions; loads that take four to five times what memory
/// takes; branches that depend on chance; a matrix read against its rows.
#[test]
fn an_estimate_is_a_verdict_a_tree_and_loops() {
    let folder = Folder::new();
    let evidence =
        ["divider", "list-walk", "random-branch", "transposed"].map(|name| ("zen3", name));
    let mut all = Vec::new();
    for (processor, name) in [&evidence[..], &[("zen4", "divider")]].concat() {
        let file = format!("{processor}-{name}.json.gz");
        let kept = root().join(format!("tests/processors/{processor}/{name}.evidence.json.gz"));
        std::fs::copy(kept, folder.path().join(&file)).expect("copied");
        let shown = shown::of(&["report", &file], &folder);
        // Less what the command was, and how it ended.
        assert!(shown.lines().count() - 2 <= ONE, "{name}: {shown}");
        assert!(!shown.contains("0-0 %"), "{shown}");
        all.push(shown);
        // Each part has a number, or says that it is not known.
        let csv = tdtool(["report", &folder.file(&file), "--format", "csv"]).succeeded().stdout;
        let parts: Vec<&str> = csv.lines().filter(|row| row.starts_with("estimate,")).collect();
        let of_time = parts.iter().filter(|row| row.split(',').nth(2) == Some(""));
        let (of_both, of_time): (Vec<&str>, Vec<&str>) =
            of_time.partition(|row| row.starts_with("estimate,backend_bound,"));
        assert_eq!((of_time.len(), of_both.len()), (7, 1), "{csv}");
        assert!(csv.lines().any(|row| row.starts_with("loop,0x")), "{csv}");
    }
    assert_shown!("estimates", all.join("\n"));
}

/// A command of several lines stays the same command.
#[test]
fn a_script_on_the_command_line_is_printed_as_one_word() {
    let script =
        "x = 1\nfor i in range(3000000):\n    x = (x * 3 + i) % 1000003\nprint('it is', x)\n";
    let shown = report(&["--", "python3", "-c", script]);
    need!(shown.stderr.contains("samples of cpu-clock"), shown.stderr);
    let quoted = r"-- python3 -c $'x = 1\nfor i in range(3000000):\n    x = (x * 3 + i) % 1000003\nprint(\'it is\', x)\n'";
    assert!(shown.stderr.contains(quoted), "{}", shown.stderr);
}
