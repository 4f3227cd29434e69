//! A live process counted for a while, again and again: it does what it does, and its code is as it was.

use super::counts::{function, numbers, with_signals};
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::{ended, program, send, start};
use crate::support::tools::gcc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use probe::count::{Counts, Wanted, count_process};
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

/// Three threads that do the same again and again until SIGTERM, each comparing its results, while
/// signals come; says how often they have, and whether any result was another one.
const BUSY: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
static volatile sig_atomic_t over, ticks;
static volatile long rounds, wrong;
static void end(int number) { over = 1; }
static void on(int number) { ticks++; }
__attribute__((noipa)) unsigned long part(unsigned long n, unsigned long x) {
    for (unsigned long i = 0; i < n; i++) {
        x = x * 3 + (x >> 5);
        if (x & 16) x ^= i; else x += i & 7;
        switch (x % 7) { case 0: x++; break; case 1: x ^= 5; break; case 2: x -= 9; break; case 3: x += i; break; case 4: x *= 5; }
    }
    return x;
}
static void *work(void *seed) {
    unsigned long first = part(1000, (unsigned long)seed);
    while (!over) {
        if (part(1000, (unsigned long)seed) != first) __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
    }
    return 0;
}
int main(void) {
    pthread_t threads[3];
    struct itimerval often = {{0, 500}, {0, 500}};
    struct sigaction again = {.sa_handler = on, .sa_flags = SA_RESTART};
    signal(SIGTERM, end);
    sigaction(SIGALRM, &again, 0);
    setitimer(ITIMER_REAL, &often, 0);
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)(i + 5));
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    printf("%s\n", wrong || !rounds || !ticks ? "wrong" : "right");
    return 4;
}
"#;

fn counted(pid: i32, wanted: &[Wanted], window: Duration) -> Option<Counts> {
    with_signals(|signals| count_process(pid, wanted, window, signals))
}

/// The bytes of a function in the memory of a process, whose file is mapped with its first page at
/// the lowest address of that name.
fn in_memory(pid: i32, of: &Wanted) -> Vec<u8> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let line = maps.lines().find(|line| line.ends_with(text(&of.path))).unwrap();
    let base = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
    let mut bytes = vec![0; (of.range.end - of.range.start) as usize];
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    memory.read_exact_at(&mut bytes, base + of.range.start).unwrap();
    bytes
}

/// Kills a process that a failed test would leave.
struct Ends(i32);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0), Signal::SIGKILL);
    }
}

#[test]
fn two_hundred_times_a_threaded_process_under_load() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(file) = gcc(folder.path(), BUSY, &["-O2", "-pthread", "-pie"], "busy") else { return };
    let file = file.canonicalize().unwrap();
    let wanted = ["part", "work", "main"].map(|name| function(&file, name));
    let running = start(&mut program(text(&file)));
    let pid = running.id().cast_signed();
    let ends = Ends(pid);
    std::thread::sleep(Duration::from_millis(20));
    let before = wanted.each_ref().map(|of| in_memory(pid, of));
    for round in 0..200 {
        let window = Duration::from_millis(if round % 50 == 0 { 100 } else { 2 });
        let Some(counts) = counted(pid, &wanted, window) else { return };
        let part = counts.functions[0].as_ref().unwrap();
        if round % 50 == 0 {
            // All that is between two calls runs as often, but for the threads' last calls.
            let entries = part.blocks[0].count.clone().unwrap();
            let all = numbers(part);
            let most = *all.last().unwrap();
            assert!(entries > 0 && most.abs_diff(1000 * entries) <= 4000 + part.slack, "{part:?}");
        }
        let after = wanted.each_ref().map(|of| in_memory(pid, of));
        assert!(after == before, "the code is as it was, round {round}");
    }
    send(&running, Signal::SIGTERM);
    let done = ended(running);
    std::mem::forget(ends);
    assert_eq!((done.code(), done.stdout.trim()), (Some(4), "right"), "{}", done.stderr);
}

#[test]
fn a_process_that_is_not_there() {
    let Some(pid) = (1..)
        .map(|n| 4_194_304 - n)
        .find(|n| !std::path::Path::new(&format!("/proc/{n}")).exists())
    else {
        return;
    };
    let error =
        with_signals(|signals| Ok(count_process(pid, &[], Duration::ZERO, signals).unwrap_err()));
    assert!(error.unwrap().to_string().contains("no process"));
}
