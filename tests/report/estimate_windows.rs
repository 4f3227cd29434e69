//! Estimates of commands that run for seconds: which further runs there are, and that windows see what whole runs do.

use super::{compiled, report};
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::trial::{Trial, assert_holds, claim};
use serde_json::Value;

/// Unpredictable branches, then loads of a chain through more memory than any cache has; in a child with an argument.
const TWO_PHASES: &str = r#"
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) static long branches(long rounds) {
    unsigned x = 1;
    long sum = 0;
    for (long i = 0; i < rounds; i++) {
        x = x * 1664525u + 1013904223u;
        __asm__ volatile("test %1, %1\n jz 1f\n add $1, %0\n nop\n nop\n 1:" : "+r"(sum) : "r"((int)(x >> 31)));
    }
    return sum;
}
__attribute__((noipa)) static long chase(long *all, long rounds) {
    long at = 0;
    for (long i = 0; i < rounds; i++) at = all[at];
    return at;
}
static int work(void) {
    long lines = 1 << 21;
    long *all = mmap(0, lines * 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    for (long i = 0; i < lines; i++) all[8 * i] = 8 * ((i * 5 + 12345677) & (lines - 1));
    return branches(150000000) + chase(all, 12000000) == 1;
}
int main(int count, char **arguments) {
    int status = 0;
    (void)arguments;
    if (count < 2) return work();
    if (!fork()) _exit(work());
    wait(&status);
    return status;
}
"#;

/// The names of the runs, and the seconds of the first.
fn runs(document: &Value) -> (Vec<String>, f64) {
    let all = document["estimate"]["runs"].as_array().expect("runs");
    let names = all.iter().filter_map(|run| run["run"].as_str().map(str::to_owned)).collect();
    (names, all[0]["seconds"].as_f64().expect("seconds"))
}

const IN_WINDOWS: &str = "branches and loads in windows";

/// Beside others, windows may miss too much, or the code not be timed.
#[test]
fn a_run_of_a_second_is_recorded_in_windows_of_one_further_run() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, TWO_PHASES, &[]) else { return };
    assert_holds("branches and loads are found in windows", || {
        let ran = report(&["--estimate", "--format", "json", "--", &program]);
        if ran.code() != Some(0) {
            return Trial::Unsettled(ran.stderr);
        }
        let document = ran.json();
        let (names, seconds) = runs(&document);
        if seconds < 0.8 {
            return Trial::Unsettled(format!("it takes {seconds} s"));
        }
        assert_eq!(names.iter().filter(|name| *name == IN_WINDOWS).count(), 1, "{names:?}");
        let part = |function: &str, part: &str| {
            let all = document["estimate"]["functions"].as_array().expect("rows");
            let own = all.iter().find(|row| row["name"] == function)?;
            own["parts"][part]["value"].as_f64()
        };
        let found = (part("branches", "bad_speculation"), part("chase", "memory_bound"));
        let shown = || format!("{found:?}: {names:?} {:#}", document["estimate"]);
        match found {
            (Some(branches), Some(chase)) => claim(branches > 0.3 && chase > 0.3, shown).into(),
            _ => Trial::Unsettled(shown()),
        }
    });
}

#[test]
fn a_command_of_several_processes_has_runs_of_each_kind() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, TWO_PHASES, &[]) else { return };
    let ran = report(&["--estimate", "--format", "json", "--", &program, "in-a-child"]);
    need!(ran.code() == Some(0), ran.stderr);
    let document = ran.json();
    let (names, _) = runs(&document);
    need!(names.contains(&"counts".to_owned()), format!("too few samples: {document:#}"));
    assert!(!names.contains(&IN_WINDOWS.to_owned()), "{names:?}");
    assert!(names.contains(&"branches".to_owned()), "{names:?}");
}

/// Runs for a second, however much it does in it.
const BY_THE_CLOCK: &str = r#"
#include <time.h>
__attribute__((noipa)) static long branches(long rounds) {
    unsigned x = 1;
    long sum = 0;
    for (long i = 0; i < rounds; i++) {
        x = x * 1664525u + 1013904223u;
        __asm__ volatile("test %1, %1\n jz 1f\n add $1, %0\n nop\n nop\n 1:" : "+r"(sum) : "r"((int)(x >> 31)));
    }
    return sum;
}
int main(void) {
    struct timespec begin, now;
    long sum = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        sum += branches(20000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1e9 + now.tv_nsec - begin.tv_nsec < 1e9);
    return sum == 1;
}
"#;

/// It does less while all of its blocks are counted. The probes of each iteration take as long as itself, about.
#[test]
fn a_program_that_a_clock_ends_is_estimated_by_the_work_that_it_does_without_probes() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = compiled(&folder, BY_THE_CLOCK, &[]) else { return };
    assert_holds("a run without probes does more", || {
        let ran = report(&["--estimate", "--format", "json", "--", &program]);
        if ran.code() != Some(0) {
            return Trial::Unsettled(ran.stderr);
        }
        let document = ran.json();
        let (work, runs) = (&document["estimate"]["work"], runs(&document).0);
        let shown = || format!("{work} {runs:?} {}", document["estimate"]["notes"]);
        // Beside others it may take so long to start that its probes seem to have taken the time.
        let Some(ratio) = work["ratio"].as_f64() else { return Trial::Unsettled(shown()) };
        assert_eq!(document["estimate"]["deterministic"], false, "{}", shown());
        assert!(work["error"].as_f64().is_some_and(|error| error >= 0.1), "{}", shown());
        // Others may have had more of the processor in one run than in the other.
        match ratio > 1.1 {
            true => Trial::Holds,
            false => Trial::Unsettled(shown()),
        }
    });
}
