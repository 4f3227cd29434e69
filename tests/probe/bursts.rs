//! Records of branches: outcomes and targets in order, as the program itself has written them down, and
//! its output as ever.

use super::counts::{function, probed};
use super::{name, symbol};
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::tools::gcc;
use probe::bursts::{Burst, Observed, Pace, Record, Recorded, record};
use probe::count::Wanted;
use probe::plan::{Request, What, branches};
use std::path::Path;

/// A random branch of two bytes after an instruction of two (`branch`), one of three indirect calls,
/// a jump through a table, in each iteration. What they do is written to the file of argument 1.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>
__attribute__((noipa)) void f0(void) {}
__attribute__((noipa)) void f1(void) {}
__attribute__((noipa)) void f2(void) {}
static void (*volatile table[3])(void) = {f0, f1, f2};
__attribute__((noipa)) long run(long n, unsigned x, char *log) {
    long all = 0;
    for (long i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        int bit = x >> 31;
        __asm__ volatile("test %1, %1\n"
                         ".globl branch\nbranch: jz 1f\n"
                         "add $1, %0\n"
                         "1:" : "+r"(all) : "r"(bit));
        table[(x >> 8) % 3]();
        switch ((x >> 16) % 7) {
        case 0: all += 1; break; case 1: all ^= 2; break; case 2: all -= 5; break; case 3: all *= 3; break;
        case 4: all += 7; break; case 5: all ^= 9; break; default: all = -all;
        }
        log[i] = bit == 0 | (x >> 8) % 3 << 1 | (x >> 16) % 7 << 3;
    }
    return all;
}
static char logs[4][100000];
static void *begin(void *n) { run(20000 + (long)n, (long)n + 1, logs[(long)n]); return 0; }
int main(int count, char **arguments) {
    pthread_t threads[4];
    long length = 60000;
    if (count > 2) {
        for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, begin, (void *)i);
        for (long i = 0; i < 4; i++) pthread_join(threads[i], 0);
    } else run(length, 1, logs[0]);
    FILE *out = fopen(arguments[1], "w");
    fwrite(logs, 1, sizeof logs, out);
    fclose(out);
    return 5;
}
"#;

fn recorded(command: &[&str], wanted: &Wanted, pace: Pace) -> Option<Recorded> {
    let all = |_: usize, function: &probe::facts::Function| branches(function);
    let one = std::slice::from_ref(wanted);
    probed(command, |command, signals| record(command, one, &all, pace, signals))
}

/// Everything in one burst.
const ALL: Pace = Pace { length: 1 << 20, bursts: 4, pause: 1.0 };

/// The records of one kind at the address, or anywhere.
fn of<'a>(
    all: &'a Recorded,
    records: &'a [Record],
    is: impl Fn(&Request) -> bool + 'a,
) -> impl Iterator<Item = &'a Record> {
    records.iter().filter(move |record| is(&all.observed[record.site as usize].request))
}

/// Compares the records with what the program has written down.
fn check(program: &Path, all: &Recorded, records: &[Record], log: &[u8]) {
    let at = symbol(program, "branch");
    let outcomes: Vec<u64> = of(all, records, |w| w.at == at).map(|r| r.value).collect();
    let expected: Vec<u64> = log.iter().map(|byte| u64::from(byte & 1)).collect();
    assert_eq!(outcomes.len(), log.len());
    assert!(outcomes == expected, "outcomes in order");
    let functions = ["f0", "f1", "f2"].map(|name| symbol(program, name));
    let called = |byte: &u8| functions[usize::from(byte >> 1 & 3)];
    let indirect = |o: &&Observed| o.request.what == What::Target;
    let places: Vec<u64> = all.observed.iter().filter(indirect).map(|o| o.request.at).collect();
    let targets =
        |at: u64| -> Vec<u64> { of(all, records, |w| w.at == at).map(|r| r.value).collect() };
    let calls = places.iter().map(|at| targets(*at)).find(|all| all.len() == log.len());
    let calls = calls.expect("a call in each iteration");
    let bias = calls[0].wrapping_sub(called(&log[0]));
    assert!(calls.iter().map(|target| target.wrapping_sub(bias)).eq(log.iter().map(called)));
    // The last case is the default, for which the compiler may test before the jump.
    for jumps in places.iter().map(|at| targets(*at)).filter(|all| *all != calls) {
        let whole = jumps.len() == log.len();
        let chosen = log.iter().map(|byte| byte >> 3).filter(|case| whole || *case < 6);
        let mut cases = [0; 7];
        assert_eq!(chosen.clone().count(), jumps.len());
        for (case, target) in chosen.zip(jumps) {
            let case = &mut cases[usize::from(case)];
            assert!(*case == 0 || *case == target, "a case has one address");
            *case = target;
        }
    }
}

#[test]
fn outcomes_and_targets_are_those_of_the_program() {
    let _busy = busy();
    for options in [&["-O2"][..], &["-O2", "-no-pie"], &["-O1", "-static"], &["-Os"]] {
        let folder = Folder::new();
        let options = [options, &["-pthread"]].concat();
        let Some(program) = gcc(folder.path(), PROGRAM, &options, "program") else { return };
        let log = folder.file("log");
        let command = [name(&program), log.as_str()];
        let Some(all) = recorded(&command, &function(&program, "run"), ALL) else { return };
        assert_eq!(all.exit, Some(pmu::Exit::Status(5)));
        let refused: Vec<_> = all.observed.iter().filter(|o| o.refused.is_some()).collect();
        // Short blocks: with -Os the end of the loop.
        assert!(refused.len() < 2, "{refused:?}");
        let [Burst { is_first: true, is_last: true, records, .. }] = &all.bursts[..] else {
            panic!("one burst")
        };
        let written = std::fs::read(&log).unwrap();
        check(&program, &all, records, &written[..60_000]);
    }
}

/// Threads are told apart by their stacks.
#[test]
fn no_record_of_a_thread_is_lost() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PROGRAM, &["-O2", "-pthread"], "program") else {
        return;
    };
    let log = folder.file("log");
    let command = [name(&program), log.as_str(), "threads"];
    let Some(all) = recorded(&command, &function(&program, "run"), ALL) else { return };
    let written = std::fs::read(&log).unwrap();
    let records = &all.bursts[0].records;
    let mut stacks: Vec<u32> = records.iter().map(|r| r.stack).collect();
    stacks.sort_unstable();
    stacks.dedup();
    assert_eq!(stacks.len(), 4, "{stacks:x?}");
    for stack in stacks {
        let own: Vec<Record> = records.iter().copied().filter(|r| r.stack == stack).collect();
        let at = symbol(&program, "branch");
        let length = of(&all, &own, |w| w.at == at).count();
        check(&program, &all, &own, &written[(length - 20_000) * 100_000..][..length]);
    }
}

#[test]
fn bursts_are_parts_of_the_run_in_order() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PROGRAM, &["-O2", "-pthread"], "program") else {
        return;
    };
    let log = folder.file("log");
    let pace = Pace { length: 1 << 12, bursts: 3, pause: 0.1 };
    let command = [name(&program), log.as_str()];
    let Some(all) = recorded(&command, &function(&program, "run"), pace) else { return };
    assert!(all.bursts.len() <= 4 && all.bursts[0].is_first, "{}", all.bursts.len());
    let written: Vec<u8> = std::fs::read(&log).unwrap()[..60_000].iter().map(|b| b & 1).collect();
    let at = symbol(&program, "branch");
    let mut from = 0;
    for burst in &all.bursts {
        let own: Vec<u8> =
            of(&all, &burst.records, |w| w.at == at).map(|r| r.value as u8).collect();
        let found = written[from..].windows(own.len()).position(|part| part == own);
        from += found.expect("consecutive outcomes") + own.len();
    }
}
