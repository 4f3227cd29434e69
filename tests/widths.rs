//! No line of a text is wider than its terminal, and long names keep both ends; files and pipes have any width.

use crate::support::files::{Folder, shared, zen4_intervals};
use crate::support::pty::on_terminal_of;
use crate::support::quiet::busy;
use crate::support::run::{command, tdtool};
use crate::support::tools::gcc;
use std::fmt::Write as _;

/// A function whose name no terminal of 80 columns has room for beside numbers, with a loop that a dependency is
/// carried through, loads, and a branch.
const PROGRAM: &str = r#"#include <stdlib.h>
static volatile unsigned table[4096];
__attribute__((noipa)) unsigned a_function_whose_name_is_longer_than_any_terminal_has_room_for_beside_numbers(unsigned n) {
    unsigned x = n, sum = 0;
    for (unsigned i = 0; i < n; i++) {
        x = x * 1664525u + table[x % 4096];
        if (x & 1) sum += table[i % 4096];
    }
    return sum;
}
int main(void) {
    unsigned sum = 0;
    for (int i = 0; i < 40; i++)
        sum += a_function_whose_name_is_longer_than_any_terminal_has_room_for_beside_numbers(100000);
    return sum == 1;
}
"#;

/// The longest name, and what is left of it on any page.
const NAME: &str = "a_function_whose_name_is_longer_than_any_terminal_has_room_for_beside_numbers";
const ENDS: [&str; 2] = ["a_fun", "bers"];

/// What a command shows on a terminal, as its screen has it.
fn shown(columns: u16, words: &[&str]) -> String {
    let (_, text) = on_terminal_of(columns, command(words));
    // Progress is overwritten.
    let text = text.rsplit("\x1b[K").next().unwrap_or_default();
    let mut screen = vt100::Parser::new(4000, 400, 0);
    screen.process(text.as_bytes());
    screen.screen().contents()
}

/// Lines of a command's text that are too wide on terminals of 40 and 80 columns, and names that are not as they
/// should be.
fn faults(words: &[&str], has_name: bool) -> String {
    let mut wrong = String::new();
    for columns in [40, 80] {
        let text = shown(columns, words);
        assert!(!text.trim().is_empty(), "{words:?}");
        for line in text.lines().map(str::trim_end) {
            let width = line.chars().count();
            // Commands to type are whole.
            let command = line.trim_start().trim_end_matches([',', ';', '.']);
            let is_command = command.starts_with("tdtool ")
                || command.starts_with('`') && command.ends_with('`');
            if width > usize::from(columns) && !is_command {
                let _ = writeln!(wrong, "{words:?}: {width} of {columns}: {line}");
            }
        }
        let is_elided =
            |line: &str| ENDS.iter().all(|end| line.contains(end)) && line.contains("...");
        if has_name && !text.lines().any(is_elided) {
            let _ = writeln!(wrong, "{words:?}: no name without its middle at {columns}:\n{text}");
        }
    }
    wrong
}

#[test]
fn tables_of_a_program_are_as_wide_as_the_terminal() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PROGRAM, &["-O1", "-g", "-no-pie"], "widths") else {
        return;
    };
    let program = program.display().to_string();
    let of_function = format!("{program}:{NAME}");
    let loops = format!("{of_function}+1");
    let mut wrong = faults(&["block", "--list", &program], true);
    wrong += &faults(&["block", "--list", &of_function], false);
    wrong += &faults(&["block", &loops, "--quick", "--budget", "100"], false);
    wrong += &faults(&["deps", &loops, "--arrows"], false);
    let counts = folder.file("counts.json");
    let counted = ["count", "--functions", NAME, "--format", "json", "-o", &counts];
    let counted = tdtool(counted.into_iter().chain(["--", &program]));
    if counted.status.success() {
        for more in [&[][..], &["--loads"], &["--branches"], &["--values"]] {
            let words = [&["count", "--functions", NAME][..], more, &["--", &program]].concat();
            wrong += &faults(&words, true);
        }
        wrong += &faults(&["count", "--hot", "--", &program], true);
        // A pipe has room for any name.
        let piped = tdtool(["count", "--functions", NAME, "--", &program]).stderr;
        assert!(piped.lines().any(|line| line.contains(NAME) && line.contains("..0x")), "{piped}");
    } else {
        eprintln!("skipped: {}", counted.stderr);
    }
    assert_eq!(wrong, "");
}

#[test]
fn tables_of_recordings_are_as_wide_as_the_terminal() {
    let Some(folder) = shared("simlbr") else { return };
    let roots = folder.parent().unwrap().display().to_string();
    let file = |name: &str| folder.join(name).display().to_string();
    let levels = file("levels.perf.data");
    let mut wrong = String::new();
    for kind in ["branches", "loads", "prefetch"] {
        wrong += &faults(&[kind, &levels, "--symfs", &roots], false);
    }
    let Some(folder) = shared("recordings") else { return };
    let file = |name: &str| folder.join(name).display().to_string();
    for name in ["autofdo/propeller_sample_1.perfdata1", "gematria/perf.data"] {
        if folder.join(name).exists() {
            wrong += &faults(&["branches", &file(name)], false);
        }
    }
    wrong += &faults(&["loads", &file("quipper/perf.data.weight_struct")], false);
    assert_eq!(wrong, "");
}

/// Reports of sampled programs, with what standard error has beside them: hints and notes, too.
#[test]
fn reports_of_samples_are_as_wide_as_the_terminal() {
    let _busy = busy();
    let folder = Folder::new();
    let inlined = PROGRAM.replace(
        "int main",
        "static inline unsigned more(unsigned x) { for (int k = 0; k < 4; k++) x = (x * 1664525u + 7) ^ x >> 5; return x; }\nint main",
    );
    let inlined = inlined.replace(
        "return sum == 1",
        "for (int i = 0; i < 20000000; i++) sum = more(sum);\n    return sum == 1",
    );
    let Some(program) = gcc(folder.path(), &inlined, &["-O1", "-g"], "sampled") else { return };
    let (program, session) = (program.display().to_string(), folder.file("s.tds"));
    let recorded = tdtool(["record", "-g", "-o", &session, "--", &program]);
    need!(recorded.stderr.contains(" samples of"), recorded.stderr);
    let told = recorded.stderr.matches("no core PMU").count();
    assert!(told <= 1, "{}", recorded.stderr);
    let mut wrong = faults(&["report", &session], true);
    wrong += &faults(&["report", "--", &program], true);
    wrong += &faults(&["report", &session, "--callers", NAME], true);
    wrong += &faults(&["record", "-o", &session, "--", &program], false);
    wrong += &faults(&["report", "-p", "999999999"], false);
    assert_eq!(wrong, "");
    let text = shown(80, &["report", &session]);
    assert!(
        text.lines().any(|line| line.contains('\u{2588}') && line.contains(" in more")),
        "{text}"
    );
}

#[test]
fn other_texts_are_as_wide_as_the_terminal() {
    let _busy = busy();
    let folder = Folder::new();
    let counts = zen4_intervals();
    let report = folder.file("a report with a name that is longer than a narrow terminal.json");
    tdtool(["report", &counts, "--format", "json", "-o", &report]).succeeded();
    let mut wrong = String::new();
    for words in [
        &["diff", &report, &report][..],
        &["bench", "-n", "2", "--warm-up", "0", "true", "--", "true"],
        &["doctor"],
        &["tables", "list"],
        &["tables", "show", "spr"],
        &["tables", "show", "spr", "Backend_Bound"],
        &["tables", "check", "--notes"],
        &["workload", "list"],
        &["workload", "list", "dependent-adds"],
        &["microbench", "list", "VADDPD_*"],
        &["block", "4801d8", "--quick", "--budget", "100", "--ports", "-v"],
        &["block", "--predict", "skl", "--quick", "--budget", "100", "c4e271b804484801d8"],
        &["block", "4801d8", "--against", "4801c3", "--quick", "--budget", "100"],
    ] {
        wrong += &faults(words, false);
    }
    assert_eq!(wrong, "");
}
