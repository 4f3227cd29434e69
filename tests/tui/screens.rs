//! The contents of the interactive screens, and the keys that do something on them.

use super::DRAWN;
use crate::report::compared::estimated;
use crate::support::child::Limited as _;
use crate::support::files::{Folder, root, text, zen4_intervals};
use crate::support::pty::Pty;
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use crate::support::tools::gcc;
use report::documents::estimate::{Estimate, Part, Parts, Row, Share};
use report::documents::{Report, Source};
use std::fs;

#[test]
fn a_file_is_opened_walked_and_left() {
    let mut pty = Pty::start(&[&zen4_intervals()], &[]);
    pty.wait_for("Backend Bound");
    pty.wait_for(DRAWN);
    pty.types("H");
    pty.wait_for("(backend_bound_memory), lev");
    pty.types("\r");
    pty.wait_for("counts but no samples");
    pty.types("\x1b");
    pty.wait_for("(backend_bound_memory), lev");
    pty.types("?");
    pty.wait_for("Keys of the tree");
    pty.types("jx");
    pty.wait_for("(backend_bound_memory), lev");
    pty.types("q");
    assert_eq!(pty.end().code(), Some(0));
    pty.assert_restored();
}

#[test]
fn a_saved_estimate_opens_with_its_tree() {
    let folder = Folder::new();
    let mut report = Report::new(Source::NoPmu);
    let share = |value: f64| Share { value, high: value, ..Share::default() };
    let parts = Parts { memory_bound: share(0.75), retiring: share(0.25), ..Parts::default() };
    let row = |name: &str| Row {
        name: name.to_owned(),
        bottleneck: Part::MemoryBound.into(),
        sentence: "Memory Bound: 75 % of its time.".to_owned(),
        parts: parts.clone(),
        ..Row::default()
    };
    let (program, functions) = (row("./mix"), vec![row("chase")]);
    report.estimate = Some(Estimate { covered: 1.0, program, functions, ..Estimate::default() });
    let text = serde_json::to_string(&report).expect("JSON");
    let file = folder.write("mix.json", &text);
    let mut pty = Pty::start(&[&file], &[]);
    pty.wait_for("estimated top-down of ./mix");
    pty.wait_for("75.0 %");
    pty.types("\r");
    pty.wait_for("chase");
    pty.types("q");
    assert_eq!(pty.end().code(), Some(0));
    pty.assert_restored();
}

#[test]
fn two_estimates_are_opened_side_by_side() {
    let folder = Folder::new();
    let a = estimated(&folder, "a.json", 1000.0, 0x1140, 0.8);
    let b = estimated(&folder, "b.json", 200.0, 0x2280, 0.2);
    let mut pty = Pty::start(&[&a, &b], &[]);
    pty.wait_for("comparison of A and B");
    pty.wait_for("-400.0 ms");
    pty.types("j\r");
    pty.wait_for("loop 0x1140 -> 0x2280");
    pty.types("q");
    assert_eq!(pty.end().code(), Some(0));
    pty.assert_restored();
    let piped = tdtool([&a, &b]).succeeded().stdout;
    assert!(piped.contains("walk loop 0x1140 -> 0x2280"), "{piped}");
}

#[test]
fn a_running_process_is_opened_by_its_number() {
    let mut child = std::process::Command::new("sleep").arg("61.7").start_limited().expect("sleep");
    let mut pty = Pty::start(&["-p", &child.id().to_string()], &[]);
    pty.wait_for(&format!("tree of sleep ({})", child.id()));
    pty.wait_for("interval 1");
    pty.types("q");
    assert_eq!(pty.end().code(), Some(0));
    assert_eq!(child.try_wait().expect("its state"), None, "the process goes on");
    child.kill().expect("killed");
    let _ = child.wait();
}

/// A program that divides, for so many seconds at most.
fn dividing(folder: &Folder) -> Option<String> {
    let source = r#"
        #include <stdlib.h>
        #include <time.h>
        __attribute__((noipa)) long divide(long n) {
            long s = 1;
            for (long i = 1; i < n; i++) s = (s + 0x7fffffffffff) / (i | 1) + i;
            return s;
        }
        int main(int argc, char **argv) {
            long s = 0, end = time(0) + atol(argv[1]);
            do s += divide(1000000); while (time(0) < end);
            return s == 42;
        }
    "#;
    Some(text(&gcc(folder.path(), source, &["-O2", "-g"], "work")?).to_owned())
}

fn has_no_pmu() -> bool {
    tdtool(["report", "--require-pmu", "--", "true"]).code() == Some(3)
}

#[test]
fn a_command_without_a_pmu_is_estimated_part_by_part() {
    need!(cfg!(target_arch = "x86_64"), "estimates are made on x86-64 only");
    need!(has_no_pmu(), "a core PMU counts the tree");
    let folder = Folder::new();
    let Some(program) = dividing(&folder) else { return };
    let _busy = busy();
    let mut pty = Pty::start(&["--", &program, "4"], &[]);
    // Functions, not an empty tree, and the offer while it runs.
    pty.wait_for("when the command has ended");
    pty.types("e");
    pty.wait_for("So far (step");
    pty.wait_for("estimated top-down of");
    pty.types("\r");
    pty.wait_for("divide");
    pty.types("q");
    let _ = pty.end();
    pty.assert_restored();
}

#[test]
fn a_live_process_without_a_pmu_is_estimated_while_it_runs() {
    need!(cfg!(target_arch = "x86_64"), "estimates are made on x86-64 only");
    need!(has_no_pmu(), "a core PMU counts the tree");
    let folder = Folder::new();
    let Some(program) = dividing(&folder) else { return };
    let _busy = busy();
    let mut child =
        std::process::Command::new(program).arg("600").start_limited().expect("started");
    let mut pty = Pty::start(&["-p", &child.id().to_string()], &[]);
    pty.wait_for("e: estimate top-down without a PMU");
    pty.wait_for("divide");
    pty.types("e");
    pty.wait_for("So far (step");
    // Keys are still read while it is estimated.
    pty.types("?");
    pty.wait_for("Keys of the estimated tree");
    pty.types("?\r");
    pty.wait_for("functions");
    pty.types("q");
    let _ = pty.end();
    pty.assert_restored();
    assert_eq!(child.try_wait().expect("its state"), None, "the process goes on");
    child.kill().expect("killed");
    let _ = child.wait();
}

#[test]
fn a_block_is_measured_on_the_screen() {
    need!(cfg!(target_arch = "x86_64"), "blocks are measured on x86-64 only");
    let _busy = busy();
    let mut pty = Pty::start(&["block", "--tui", "--budget", "200", "4801d8480fafc3"], &[]);
    pty.wait_for("imul rax,rbx");
    // Whatever it came to is shown: its range, or on a busy machine that there is none.
    pty.wait_until("a result", |screen| {
        let shown = screen.contents();
        ["cycles per iteration", "unstable", "failed"].iter().any(|word| shown.contains(word))
    });
    pty.types("q");
    assert_eq!(pty.end().code(), Some(0));
    pty.assert_restored();
}

#[test]
fn without_colours_the_selected_row_still_stands_out() {
    fn cells(screen: &vt100::Screen) -> Vec<&vt100::Cell> {
        let places = (0..30).flat_map(|y| (0..100).map(move |x| (y, x)));
        places.filter_map(|(y, x)| screen.cell(y, x)).collect()
    }
    let pty = Pty::start(&[&zen4_intervals()], &[("NO_COLOR", "1")]);
    pty.wait_for("Backend Bound");
    pty.wait_until("a reversed row", |screen| cells(screen).iter().any(|c| c.inverse()));
    pty.look(|screen| {
        assert!(cells(screen).iter().all(|c| c.fgcolor() == vt100::Color::Default));
    });
}

#[test]
fn docs_keys_is_what_the_program_says() {
    let written =
        fs::read_to_string(root().join("docs/guide/keys.md")).expect("docs/guide/keys.md");
    let said = tdtool(["keys"]).stdout;
    assert!(
        written == said,
        "docs/guide/keys.md is old: `tdtool keys > docs/guide/keys.md` renews it"
    );
}

#[test]
fn a_config_file_changes_keys_and_a_bad_one_is_an_error_before_the_screen_opens() {
    let folder = Folder::new();
    let home = text(folder.path());
    let environment = [("XDG_CONFIG_HOME", home)];
    folder.write("tdtool/config.toml", "ascii = true\n[keys]\nquit = \"x\"\n");
    let mut pty = Pty::start(&[&zen4_intervals()], &environment);
    pty.wait_for("x quit");
    assert!(pty.text().is_ascii(), "{}", pty.text());
    pty.types("x");
    assert_eq!(pty.end().code(), Some(0));
    folder.write("tdtool/config.toml", "[keys]\nquit = \"j\"\n");
    let mut pty = Pty::start(&[&zen4_intervals()], &environment);
    pty.wait_for("the key j is bound twice");
    assert_eq!(pty.end().code(), Some(2));
    let mut pty = Pty::start(&["--config", "/no/such/file", &zen4_intervals()], &[]);
    pty.wait_for("cannot read the config file");
    assert_eq!(pty.end().code(), Some(2));
}

#[test]
fn a_screen_is_saved_and_no_file_is_overwritten() {
    let folder = Folder::new();
    let name = folder.file("tree.txt");
    let mut pty = Pty::start(&[&zen4_intervals()], &[]);
    pty.wait_for("Backend Bound");
    // Ctrl-U empties the prompt.
    pty.types(&format!("P\x15{name}\r"));
    pty.wait_for("saved in");
    let saved = folder.read("tree.txt");
    assert!(saved.contains("Backend Bound"), "{saved}");
    pty.types(&format!("P\x15{name}\r"));
    pty.wait_for("the file exists");
    assert_eq!(folder.read("tree.txt"), saved);
    pty.types("q");
    assert_eq!(pty.end().code(), Some(0));
}
