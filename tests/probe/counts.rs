//! Entry counts by probes: what the source says, however the program runs, and its output as ever.

use crate::support::child::Limited as _;
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::tools::{available, build, gcc};
use crate::support::wait::until;
use pmu::perf::Signals;
use probe::count::{Counts, FunctionCounts, Wanted, count};
use std::ffi::OsString;
use std::path::Path;

/// The function `name` of a file.
pub fn function(file: &Path, name: &str) -> Wanted {
    find(file, name).unwrap()
}

fn find(file: &Path, name: &str) -> Option<Wanted> {
    use object::{Object as _, ObjectSymbol as _};
    let data = std::fs::read(file).unwrap();
    let parsed = object::File::parse(&*data).unwrap();
    let mut all = parsed.symbols().chain(parsed.dynamic_symbols());
    let found = all.find(|s| s.name() == Ok(name))?;
    let range = found.address()..found.address() + found.size();
    Some(Wanted { path: file.to_owned(), range })
}

/// The counts of functions in a run of a command; `None`, with a message, where tracing is not
/// permitted.
pub fn counted(command: &[&str], wanted: &[Wanted]) -> Option<Counts> {
    probed(command, |command, signals| count(command, wanted, signals))
}

/// What a run with probes gives; `None`, with a message, where tracing is not permitted.
pub fn probed<T>(
    command: &[&str],
    run: impl FnOnce(&pmu::Command, &Signals) -> tma::Result<T>,
) -> Option<T> {
    let argv = command.iter().map(OsString::from).collect();
    let command = pmu::Command { argv, stdout: pmu::Stdout::Stderr, ..pmu::Command::default() };
    with_signals(|signals| run(&command, signals))
}

/// What `measure` gives, one measurement at a time in this process; `None`, with a message, where it is
/// not permitted.
pub fn with_signals<T>(measure: impl FnOnce(&Signals) -> tma::Result<T>) -> Option<T> {
    let mut signals = None;
    let caught = || {
        signals = Signals::catch().ok();
        signals.is_some()
    };
    until(caught, || "another test still measures".to_owned());
    let signals = signals?;
    match measure(&signals) {
        Err(error) if error.kind() == tma::error::ErrorKind::NotPossible => {
            eprintln!("skipped: {error}");
            None
        }
        other => Some(other.unwrap()),
    }
}

/// All counts of a function that are known, ascending, without those that are 0.
pub fn numbers(function: &FunctionCounts) -> Vec<u64> {
    assert!(function.contradictions.is_empty(), "{function:?}");
    let mut all: Vec<u64> =
        function.blocks.iter().filter_map(|b| b.count.clone().ok()).filter(|n| *n > 0).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Loops, recursion and a switch. The result of everything is printed to the file of argument 1.
pub const PLAIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noipa)) unsigned nested(long n, long m, unsigned x) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < m; j++) { x = x * 1664525u + 1013904223u; __asm__ volatile("" : "+r"(x)); }
    return x;
}
/* Calls for fib(25): 2 fib(26) - 1 = 242785 (OEIS A001595). */
__attribute__((noipa)) long fib(long n) {
    if (n < 2) return n;
    long a = fib(n - 1), b = fib(n - 2);
    __asm__ volatile("" : "+r"(b));
    return a + b;
}
__attribute__((noipa)) long choose(long n) {
    long r = 0;
    for (long i = 0; i < n; i++)
        switch (i % 9) {
        case 0: r += 1; break; case 1: r ^= 2; break; case 2: r -= 5; break; case 3: r *= 3; break;
        case 4: r += 7; break; case 5: r ^= 9; case 6: r += r >> 3; break; case 7: r = -r; break;
        default: r++;
        }
    return r;
}
int main(int count, char **arguments) {
    long all = nested(70, 3000, count) + fib(25) + choose(90000);
    FILE *out = fopen(arguments[1], "w");
    fprintf(out, "%ld\n", all);
    return 3;
}
"#;

fn assert_plain(options: &[&str]) {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), PLAIN, options, "program") else { return };
    let (name, result) = (super::name(&program), folder.file("result"));
    assert_eq!(
        std::process::Command::new(name).arg(&result).end_limited().unwrap().code(),
        Some(3)
    );
    let expected = folder.read("result");
    let wanted = ["nested", "fib", "choose"].map(|name| function(&program, name));
    let Some(counts) = counted(&[name, &result], &wanted) else { return };
    assert_eq!(folder.read("result"), expected, "the program does what it does");
    assert_eq!(counts.exit, Some(pmu::Exit::Status(3)));
    let [nested, fib, choose] = &counts.functions[..] else { panic!("three functions") };
    let nested = numbers(nested.as_ref().unwrap());
    assert!(nested.contains(&70) && nested.contains(&210_000), "{nested:?}");
    // Calls that do not recurse: fib(26) = 121393.
    let fib = fib.as_ref().unwrap();
    assert_eq!(fib.blocks[0].count, Ok(242_785), "{fib:?}");
    assert!(numbers(fib).iter().all(|n| [242_785, 121_392, 121_393].contains(n)), "{fib:?}");
    let choose = numbers(choose.as_ref().unwrap());
    assert!(choose.contains(&90_000) && choose.contains(&10_000), "{choose:?}");
    // A loop's head is entered once more than its body.
    assert!(choose.iter().all(|n| n % 10_000 <= 1), "{choose:?}");
}

#[test]
fn loops_recursion_and_switches_of_position_independent_code() {
    for level in ["-O1", "-O2", "-O3", "-Os"] {
        assert_plain(&[level]);
    }
    // With landing places of indirect jumps, as for shadow stacks.
    assert_plain(&["-O2", "-fcf-protection=full"]);
}

#[test]
fn the_same_at_fixed_addresses_and_without_libraries() {
    assert_plain(&["-O2", "-no-pie"]);
    assert_plain(&["-O2", "-static"]);
    assert_plain(&["-O2", "-static-pie"]);
}

/// Exceptions: of 9,000 calls every third throws one class, of the others every seventh another.
const EXCEPTIONS: &str = r#"
#include <cstdio>
#include <stdexcept>
#include <string>
struct Guard { int &runs; ~Guard() { runs++; } };
extern "C" __attribute__((noinline)) int thrower(int i) {
    if (i % 3 == 0) throw std::runtime_error("x" + std::to_string(i));
    if (i % 7 == 0) throw i;
    return i;
}
extern "C" __attribute__((noinline)) int middle(int i, int &runs) {
    Guard guard{runs};
    std::string text(i % 40, 'a');
    return thrower(i) + text.size();
}
extern "C" __attribute__((noinline)) long run(int n) {
    long all = 0; int runs = 0;
    for (int i = 1; i <= n; i++)
        try { all += middle(i, runs); }
        catch (std::exception &e) { all += e.what()[0]; }
        catch (int k) { all -= k; }
    return all + runs;
}
int main(int, char **arguments) {
    std::fprintf(std::fopen(arguments[1], "w"), "%ld\n", run(9000));
}
"#;

#[test]
fn exceptions_pass_through_probed_code() {
    let _busy = busy();
    if !available("g++") {
        return;
    }
    let folder = Folder::new();
    for level in ["-O1", "-O2"] {
        let Some(program) = build(folder.path(), "g++", EXCEPTIONS, &[level], "thrower") else {
            return;
        };
        let (name, result) = (super::name(&program), folder.file("result"));
        assert!(std::process::Command::new(name).arg(&result).end_limited().unwrap().success());
        let expected = folder.read("result");
        let mut wanted = ["thrower", "middle", "run"].map(|name| function(&program, name)).to_vec();
        // Where the compiler has put what runs rarely.
        wanted.extend(find(&program, "run.cold"));
        let Some(counts) = counted(&[name, &result], &wanted) else { return };
        assert_eq!(counts.exit, Some(pmu::Exit::Status(0)));
        assert_eq!(folder.read("result"), expected);
        let of = |number: usize| counts.functions[number].as_ref().unwrap();
        assert_eq!(of(0).blocks[0].count, Ok(9000));
        assert_eq!(of(1).blocks[0].count, Ok(9000));
        // 3,000 are divisible by 3, 857 of the others by 7 (1,285 less 428 by 21).
        let loops: Vec<u64> = (2..wanted.len()).flat_map(|number| numbers(of(number))).collect();
        assert!([857, 3000, 9000].iter().all(|n| loops.contains(n)), "{loops:?}");
    }
}

/// Four threads that add; `loop_entries` is what the iterations of all of them sum to.
const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
static long values[64];
__attribute__((noinline)) long work(long n, long *a) {
    long s = 0;
    for (long i = 0; i < n; i++) {
        if (i % 3) s += i; else s ^= a[i & 63];
        __asm__ volatile("" ::: "memory");
    }
    return s;
}
static void *begin(void *n) { return (void *)work((long)n, values); }
int main(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, begin, (void *)(3000000 + i));
    for (long i = 0; i < 4; i++) pthread_join(threads[i], 0);
}
"#;

#[test]
fn threads_lose_no_count() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), THREADS, &["-O2", "-pthread"], "threads") else {
        return;
    };
    let wanted = [function(&program, "work")];
    let Some(counts) = counted(&[super::name(&program)], &wanted) else { return };
    let all = numbers(counts.functions[0].as_ref().unwrap());
    // Thirds of 3,000,000 + i, rounded up: 1,000,000 + 1,000,001 three times.
    for expected in [4, 4_000_003, 8_000_003, 12_000_006] {
        assert!(all.contains(&expected), "{expected} of {all:?}");
    }
}

/// A hundred threads at the same time, more than have counters of their own; or, with an argument, two, the first of which
/// has set the base of gs before.
const MANY: &str = r#"
#include <asm/prctl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
static pthread_barrier_t all;
__attribute__((noinline)) long work(long n) {
    long x = 1;
    for (long i = 0; i < n; i++) { x = x * 3 + (x >> 5); __asm__ volatile("" : "+r"(x)); }
    return x;
}
static void *begin(void *n) {
    pthread_barrier_wait(&all);
    return (void *)work((long)n);
}
static long own[8];
int main(int count, char **arguments) {
    int number = count > 1 ? 2 : 100;
    pthread_t threads[100];
    if (count > 1) syscall(SYS_arch_prctl, ARCH_SET_GS, own);
    pthread_barrier_init(&all, 0, number);
    for (int i = 0; i < number; i++) pthread_create(&threads[i], 0, begin, (void *)20000l);
    for (int i = 0; i < number; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < 8; i++) if (own[i]) return 1;
    return 0;
}
"#;

#[test]
fn many_threads_at_once_and_those_of_programs_that_use_gs_lose_no_count() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), MANY, &["-O2", "-pthread"], "many") else { return };
    let wanted = [function(&program, "work")];
    for (argument, threads) in [(None, 100), (Some("gs"), 2)] {
        let mut command = vec![super::name(&program)];
        command.extend(argument);
        let Some(counts) = counted(&command, &wanted) else { return };
        let all = numbers(counts.functions[0].as_ref().unwrap());
        for expected in [threads, 20_000 * threads] {
            assert!(all.contains(&expected), "{expected} of {all:?}");
        }
        assert_eq!(counts.exit.map(pmu::Exit::code), Some(0), "its own memory at gs is as it was");
    }
}

/// Signals every 50 µs, a fork that counts on, system(3), vfork(2).
const CHILDREN: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long ticks;
__attribute__((noinline)) void on(int number) { ticks++; }
__attribute__((noinline)) long loop(long n) {
    long x = 1;
    for (long i = 0; i < n; i++) { x = x * 3 + (x >> 5); if (x & 16) x ^= i; }
    return x;
}
int main(int count, char **arguments) {
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, on);
    setitimer(ITIMER_REAL, &often, 0);
    long all = loop(5000000);
    setitimer(ITIMER_REAL, &never, 0);
    int status;
    pid_t child = fork();
    if (!child) _exit(loop(1000000) & 1);
    all += loop(1000000);
    waitpid(child, &status, 0);
    all += WEXITSTATUS(status) + WEXITSTATUS(system("exit 3"));
    child = vfork();
    if (!child) _exit(7);
    waitpid(child, &status, 0);
    FILE *out = fopen(arguments[1], "w");
    fprintf(out, "%ld %ld\n", ticks, all + WEXITSTATUS(status));
    fclose(out);
}
"#;

#[test]
fn signals_and_children_are_counted_and_do_what_they_do() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(program) = gcc(folder.path(), CHILDREN, &["-O2"], "children") else { return };
    let (name, result) = (super::name(&program), folder.file("result"));
    let numbers_of = |text: String| -> Vec<u64> {
        text.split_whitespace().map(|n| n.parse::<i64>().unwrap().cast_unsigned()).collect()
    };
    assert!(std::process::Command::new(name).arg(&result).end_limited().unwrap().success());
    let plain = numbers_of(folder.read("result"));
    let wanted = ["loop", "on"].map(|name| function(&program, name));
    let Some(counts) = counted(&[name, &result], &wanted) else { return };
    assert_eq!(counts.exit, Some(pmu::Exit::Status(0)));
    let probed = numbers_of(folder.read("result"));
    assert_eq!(probed[1], plain[1]);
    let looped = counts.functions[0].as_ref().unwrap();
    assert_eq!(looped.blocks[0].count, Ok(3), "{looped:?}");
    assert!(numbers(looped).contains(&7_000_000), "{looped:?}");
    // Signals are as many as the program itself has counted.
    assert_eq!(counts.functions[1].as_ref().unwrap().blocks[0].count, Ok(probed[0]));
}
