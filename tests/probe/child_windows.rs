//! Windows of a command's run: what is recorded is what the program does, which runs to its own end.

use super::counts::{function, probed};
use super::name;
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::tools::gcc;
use probe::bursts::{Pace, Recorded, Spread, Windows};
use probe::facts::Function;
use probe::plan::branches;
use std::path::Path;
use std::time::Duration;

/// Random branches, with signals meanwhile if there is an argument. The status is the number of those taken, modulo 64,
/// and 64 more if a signal came.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <time.h>
static volatile int signals;
static void count(int signal) { (void)signal; signals = 1; }
__attribute__((noipa)) long run(long n, unsigned x) {
    long all = 0;
    for (long i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        // It takes its time, in a block of instructions that are shorter than a jump.
        __asm__ volatile("jmp 2f\n 2: .rept 30\n imul $1, %1, %1\n .endr\n"
                         "test %2, %2\n jz 1f\n add $1, %0\n nop\n nop\n 1:"
                         : "+r"(all), "+r"(x) : "r"((int)(x >> 31)));
    }
    return all;
}
int main(int count_, char **arguments) {
    struct itimerspec often = {{0, 3000000}, {0, 3000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGWINCH};
    timer_t timer;
    signal(SIGWINCH, count);
    if (count_ > 2 && !timer_create(CLOCK_MONOTONIC, &event, &timer)) timer_settime(timer, 0, &often, 0);
    return run(atol(arguments[1]), 1) % 64 + 64 * signals;
}
"#;

const ITERATIONS: usize = 20_000_000;
const SPREAD: Spread =
    Spread { length: Duration::from_millis(5), pause: Duration::from_millis(10), most: 6 };

/// Whether the branches are taken, by the program's own rule: these jump where the bit is 0.
fn outcomes() -> Vec<u64> {
    let mut x = 1_u32;
    let next = |_| {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        u64::from(x >> 31 == 0)
    };
    (0..ITERATIONS).map(next).collect()
}

fn in_windows(program: &Path, arguments: &[&str], spread: Spread) -> Option<Vec<Recorded>> {
    let one = function(program, "run");
    let command = [&[name(program)], arguments].concat();
    let pace = Pace { length: 1 << 10, bursts: 4, pause: 1.0 };
    // By address: whether there is an iteration, the branch on the bit, whether there is another.
    let own =
        |_: usize, function: &Function| branches(function).into_iter().skip(1).take(1).collect();
    probed(&command, |command, signals| {
        let mut windows = Windows::of(std::slice::from_ref(&one), signals);
        windows.add(&own, pace);
        windows.add(&own, pace);
        windows.run(command, spread)
    })
}

#[test]
fn windows_are_parts_of_the_run_whose_end_is_its_own() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PROGRAM, &["-O1"], "program") else { return };
    let all = outcomes();
    let taken = all.iter().filter(|outcome| **outcome == 0).count();
    let iterations = ITERATIONS.to_string();
    for (extra, status) in [(None, taken % 64), (Some("signals"), taken % 64 + 64)] {
        let arguments: Vec<&str> = std::iter::once(&*iterations).chain(extra).collect();
        let Some(kinds) = in_windows(&program, &arguments, SPREAD) else { return };
        assert_eq!(kinds.len(), 2);
        for recorded in &kinds {
            let exit = pmu::Exit::Status(i32::try_from(status).expect("a status"));
            assert_eq!(recorded.exit, Some(exit), "{:?}", recorded.notes);
            assert!(recorded.windows <= SPREAD.most, "{}", recorded.windows);
            let mut from = 0;
            for burst in &recorded.bursts {
                let own: Vec<u64> = burst.records.iter().map(|record| record.value).collect();
                let found = all[from..].windows(own.len()).position(|part| part == own);
                from += found.expect("consecutive outcomes") + own.len();
            }
            let shown = format!("{} windows: {:?}", recorded.windows, recorded.observed);
            need!(!recorded.bursts.is_empty(), shown);
        }
    }
}

/// The last window is not over when the program ends.
#[test]
fn a_program_that_ends_in_a_window_keeps_its_status() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PROGRAM, &["-O1"], "program") else { return };
    let spread = Spread { length: Duration::from_secs(60), ..SPREAD };
    let Some(kinds) = in_windows(&program, &["10000000"], spread) else { return };
    let status = outcomes()[..10_000_000].iter().filter(|outcome| **outcome == 0).count() % 64;
    let exit = pmu::Exit::Status(i32::try_from(status).expect("a status"));
    assert_eq!(kinds[0].exit, Some(exit), "{:?}", kinds[0].notes);
    assert!(kinds[0].windows <= 1 && kinds[1].windows == 0);
}
